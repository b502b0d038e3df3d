// What every reader's measurements are held to: samples that a machine can give, and texts that can
// be printed and written into a profile. Left out: whether a figure is good (doubts.h).
#pragma once

#include <string>

#include "calibration/measurements.h"

namespace spillway::calibration {

/// Of one file, `path`. Samples that no machine gives (a copy at 1 B/s or at 1 EB/s, a kernel of a
/// day) are left out with a note. An error: the file held nothing else.
Result<Measurements> only_possible(Measurements measurements, const std::string& path);

}  // namespace spillway::calibration
