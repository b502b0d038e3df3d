// What the pools of the runtime (XLA's BFC allocator) log: their sizes at the start, requests that
// failed, and the dump of a pool that was too full.
#pragma once

#include <string>

#include "model/log/log_text.h"

namespace spillway::log {

/// Which memory a pool hands out.
enum class PoolKind { kDevice, kCollective, kHost };
std::string_view name_of(PoolKind kind);
/// By the allocator's name: "GPU_0_bfc", "GPU_collectivememory_0_bfc", "xla_gpu_host_bfc".
PoolKind pool_kind(std::string_view allocator);

/// "XLA backend allocating N bytes on device 0 for BFCAllocator."
struct PoolSize {
  LineNumber line = 0;
  PoolKind kind = PoolKind::kDevice;
  Bytes bytes;
  std::int64_t device = 0;
  bool preallocated = false;  ///< otherwise it grows up to that
};
std::vector<PoolSize> find_pool_sizes(const std::vector<Line>& lines);

/// "Allocator (GPU_0_bfc) ran out of memory trying to allocate 27.93GiB (rounded to 29995136256)"
struct FailedRequest {
  LineNumber line = 0;
  std::string allocator;
  LoggedBytes requested;
  std::size_t times = 1;
};
std::vector<FailedRequest> find_failed_requests(const std::vector<Line>& lines);

/// The dump of one pool, or only its statistics (Limit, InUse, …).
struct PoolDump {
  LineNumber line = 0;
  std::string allocator;  ///< empty where only statistics were logged
  PoolKind kind = PoolKind::kDevice;
  std::optional<LoggedBytes> limit, in_use, max_in_use, max_alloc, reserved;
  std::optional<std::int64_t> allocations;
  /// What the pool has from the driver so far; it may grow from there to the limit.
  std::optional<LoggedBytes> pool;
  std::size_t bins = 0;
  /// Sums over the lines "Free at … of size …"; none where the dump has no such lines.
  std::size_t free_chunks = 0;
  Bytes free_in_chunks{0};
  /// The largest piece that was free: of the chunks, or as the dump says.
  std::optional<LoggedBytes> largest_free;
  bool cut = false;  ///< without the statistics that end a dump
};
std::vector<PoolDump> find_pool_dumps(const std::vector<Line>& lines);

}  // namespace spillway::log
