// Reader of bandwidthTest, of the CUDA samples: its tables of transfer sizes, and the lines of
// --csv.
#pragma once

#include <string>
#include <string_view>

#include "calibration/measurements.h"

namespace spillway::calibration {

bool is_bandwidth_test(std::string_view text);

/// An error: no transfer between host and device in it.
Result<Measurements> read_bandwidth_test(std::string_view text, const std::string& path);

}  // namespace spillway::calibration
