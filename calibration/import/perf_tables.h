// Reader of XLA's performance tables, as its own tools print them: of matrix products
// (matmul_perf_table_gen) and of collectives (collective_perf_table_gen). One table holds several
// devices.
#pragma once

#include <string>
#include <string_view>

#include "calibration/measurements.h"
#include "model/hardware/profile.h"

namespace spillway::calibration {

bool is_perf_table(std::string_view text);

/// The entries of the device that `base` describes, by its compute capability and, where a table
/// has several of one, its name. Products faster than the device can be are left out. An error: no
/// table, or none of that device, with those it has.
Result<Measurements> read_perf_table(std::string_view text, const std::string& path,
                                     const HardwareProfile& base);

}  // namespace spillway::calibration
