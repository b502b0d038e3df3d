// What a fit changed, as a picture: rates of copies by size, and each figure against what it was.
#pragma once

#include <string>

#include "calibration/fit/fit.h"

namespace spillway::calibration {

/// An SVG: a panel for each curve, points measured, a line fitted, a dashed one of the base; below
/// them each fitted figure as a share of what it was. The same fit gives the same bytes.
std::string to_svg(const Fit& fit, const std::string& base_id);

}  // namespace spillway::calibration
