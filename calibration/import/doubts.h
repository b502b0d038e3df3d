// What measurements show together that no reader sees alone: rates below what the link can, GPUs
// that differ, directions that only kernels copied.
#pragma once

#include <vector>

#include "calibration/measurements.h"
#include "model/hardware/profile.h"

namespace spillway::calibration {

/// Warnings beside those of the readers; copies of GPUs that are far below the others' become ones
/// of far memory, which do not count for the link. What the wires carry is said by the
/// measurements, else by `base`.
std::vector<Warning> find_doubts(Measurements& measurements, const HardwareProfile& base);

}  // namespace spillway::calibration
