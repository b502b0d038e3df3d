// What one instruction costs on a machine when nothing else runs, and what it asks of the resources
// it shares with others. The engine turns this into tasks; a plan never reads it directly.
#pragma once

#include "model/base/units.h"
#include "model/cost/kernel_class.h"

namespace spillway {

/// What decided a time.
enum class Bound : std::uint8_t {
  kNone,      ///< nothing runs
  kCompute,   ///< the peak of matrix units or vector units
  kMemory,    ///< HBM
  kLaunch,    ///< too small to fill the device: starting it takes longer than what it does
  kHostLink,  ///< the link between GPU and host
  kNetwork,   ///< the fabric between GPUs
  kMeasured,  ///< nothing: somebody measured the time
  kUnknown,   ///< it is not known what runs; `time` is a lower bound
};

/// "compute", "memory", …
std::string_view name_of(Bound bound);

struct Cost {
  Seconds time{};  ///< alone on the device, from its start to its end
  Bound bound = Bound::kNone;
  KernelClass kernel = KernelClass::kFree;
  bool uses_sms = false;  ///< false for copy engines: it runs beside a kernel without slowing it
  Seconds gap{};          ///< the device idles for so long before the next kernel of its stream
  Bytes hbm_bytes{};      ///< read and written
  Bytes host_to_device{}, device_to_host{};  ///< across the host link
  Bytes fabric_bytes{};                      ///< that leave the GPU inside its NVLink domain
  Bytes network_bytes{};                     ///< that leave it through its NIC

  friend bool operator==(const Cost&, const Cost&) = default;
};

}  // namespace spillway
