// How fast the copies of one GPU get across the host link, and what of the memory behind it is the
// GPU's while all GPUs of its CPU copy.
#pragma once

#include "model/cost/topology.h"
#include "model/hardware/profile.h"

namespace spillway {

struct HostRates {
  std::int64_t gpus_of_cpu = 1;  ///< of the program, that copy at the same time
  /// Host memory of one CPU / its GPUs: for copies into the device, out of it, and both together.
  /// Where the profile has no rate of a direction, that of both is taken.
  BytesPerSecond memory_read, memory_write, memory;
  /// A copy alone in its direction: the slower of the wires and the memory's share.
  BytesPerSecond host_to_device, device_to_host;
  /// Either direction while both are busy, by halves.
  BytesPerSecond each_of_both;
};
HostRates host_rates(const HardwareProfile& profile, std::int64_t gpus_of_cpu);
HostRates host_rates(const HardwareProfile& profile, const Topology& topology);

}  // namespace spillway
