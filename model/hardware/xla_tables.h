// What XLA's own cost models know of a device.
#pragma once

#include "model/hardware/profile.h"

namespace spillway {

/// Whether XLA has measured times of matrix products for a device. Without, its scheduler takes
/// fixed sizes for everything it runs, a unit for each kind of instruction, instead of times.
/// Source: the keys of xla/service/gpu/model's default_matmul_perf_table, August 2026.
inline bool xla_times_products(const Device& device) {
  for (const char* name : {"NVIDIA GB200", "NVIDIA GB300", "NVIDIA B300"})
    if (device.xla_name == name) return false;
  return true;
}

}  // namespace spillway
