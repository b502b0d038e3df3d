#include "model/plan/host_pool.h"

#include <algorithm>
#include <vector>

namespace spillway {

Bytes pinned_by_growth(std::span<const Bytes> requests, Bytes limit) {
  constexpr std::int64_t kFirstRegion = std::int64_t{2} << 20;
  constexpr std::int64_t kGranule = 256;
  std::vector<std::int64_t> room;  // left in each region
  std::int64_t pinned = 0;
  std::int64_t next_region = kFirstRegion;
  for (const Bytes request : requests) {
    const std::int64_t size = (request.value() + kGranule - 1) / kGranule * kGranule;
    // Best fit, as the pool's bins give it.
    auto best = room.end();
    for (auto at = room.begin(); at != room.end(); ++at)
      if (*at >= size && (best == room.end() || *at < *best)) best = at;
    if (best != room.end()) {
      *best -= size;
      continue;
    }
    const std::int64_t available = (limit.value() - pinned) / kGranule * kGranule;
    if (size > available) continue;
    const bool grows_by_itself = next_region >= size;
    while (next_region < size) next_region *= 2;
    const std::int64_t region = std::min(next_region, available);
    pinned += region;
    room.push_back(region - size);
    if (grows_by_itself) next_region *= 2;
  }
  return Bytes(pinned);
}

}  // namespace spillway
