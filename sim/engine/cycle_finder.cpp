#include "sim/engine/cycle_finder.h"

#include <algorithm>

namespace spillway::engine {
namespace {

std::uint64_t hash_of(std::span<const std::int64_t> state) {
  std::uint64_t hash = state.size();
  for (const std::int64_t word : state) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9e37'79b9'7f4a'7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

void CycleFinder::clear() {
  added_ = 0;
  next_anchor_ = 1;
}

void CycleFinder::remember(Seen& seen, std::int64_t iteration, std::uint64_t hash,
                           std::span<const std::int64_t> state) {
  seen.iteration = iteration;
  seen.hash = hash;
  seen.state.assign(state.begin(), state.end());
}

std::optional<std::int64_t> CycleFinder::add(std::int64_t iteration,
                                             std::span<const std::int64_t> state) {
  const std::uint64_t hash = hash_of(state);
  const auto same = [&](const Seen& seen) {
    return seen.hash == hash && std::ranges::equal(seen.state, state);
  };
  for (std::size_t back = 1; back <= std::min(added_, kRecent); ++back) {
    const Seen& seen = recent_[(added_ - back) % kRecent];
    if (same(seen)) return iteration - seen.iteration;
  }
  if (next_anchor_ > 1 && same(anchor_)) return iteration - anchor_.iteration;

  remember(recent_[added_ % kRecent], iteration, hash, state);
  ++added_;
  if (iteration >= next_anchor_) {
    remember(anchor_, iteration, hash, state);
    next_anchor_ = 2 * iteration;
  }
  return {};
}

}  // namespace spillway::engine
