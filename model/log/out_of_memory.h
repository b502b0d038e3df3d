// The sentence in which an allocation failed, as XLA's runtime and the driver write it.
#pragma once

#include <string>

#include "model/log/log_text.h"

namespace spillway::log {

enum class FailedIn {
  kDevicePool,   ///< "Out of memory while trying to allocate"
  kHostPool,     ///< "Out of host memory …": the pool of pinned memory is at its limit
  kDevice,       ///< the driver had no device memory left
  kPinnedMemory  ///< the driver could not pin host memory
};
std::string_view name_of(FailedIn where);

struct OutOfMemory {
  LineNumber line = 0;  ///< of the first
  FailedIn where = FailedIn::kDevicePool;
  LoggedBytes requested;
  std::string executable;  ///< empty where the message names none
  std::size_t times = 1;   ///< how often the same was logged, by all devices together
};
std::vector<OutOfMemory> find_out_of_memory(const std::vector<Line>& lines);

/// "Free memory/Total memory: A/B", which the driver's allocator adds.
struct CudaMemory {
  LineNumber line = 0;
  Bytes free, total;
};
std::vector<CudaMemory> find_cuda_memory(const std::vector<Line>& lines);

}  // namespace spillway::log
