// The link and host memory of a profile from copies: each direction alone (copy_fit.h), both ways
// at once, all GPUs of a CPU at once, what the wires carry; and beside the profile what pageable
// memory, the far socket and rows that do not follow each other cost.
#pragma once

#include "calibration/fit/figure_sheet.h"

namespace spillway::calibration {

/// Sets the figures of `fit.profile.link` and `.host`.
void fit_link(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet,
              Fit& fit);

}  // namespace spillway::calibration
