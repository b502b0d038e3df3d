// Reader of Nsight Systems exports: `nsys export --type sqlite`.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/run/measured_run.h"

namespace spillway {

/// Reads kernels, copies and fills, and finds the HLO instruction of each by the NVTX range it was
/// launched in. Tables and columns that are not there are notes, and what they mean. An error: no
/// such export, or neither kernels nor copies in it.
Result<MeasuredRun> read_nsys(const std::string& path);

}  // namespace spillway
