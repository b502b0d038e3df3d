// The probe's device with CUDA behind it: streams, events, a gate kernel, and buffers that are
// larger than any cache.
#pragma once

#include <memory>
#include <string>

#include "calibration/probe/device.h"

namespace spillway::probe {

/// Why no device can be made here ("no NVIDIA driver"); "" when there is one.
std::string why_no_device();

/// `largest_copy` is what buffers hold. Only the machine's GPUs that CUDA_VISIBLE_DEVICES leaves.
std::unique_ptr<Device> make_cuda_device(std::int64_t largest_copy);

}  // namespace spillway::probe
