// What the driver's management library says of a GPU: clocks, throttling, link, power. It is looked
// for when the probe runs; where it is missing, what it would have said is not known.
#pragma once

#include <memory>
#include <string>

#include "calibration/probe/device.h"

namespace spillway::probe {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver_version() const;  ///< "" when not known
  /// The facts of the GPU on a PCI bus, into what is known of it.
  void describe(Gpu& gpu) const;
  GpuState state(const std::string& bus_id) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;  // null where there is none
};

}  // namespace spillway::probe
