#include "model/memory/residents.h"

#include <algorithm>
#include <iterator>

namespace spillway {

std::int32_t Residents::gap_before(Stretches::const_iterator stretch) const {
  const LogicalTime to = stretch == stretches_.end() ? end_ : stretch->first;
  const LogicalTime from =
      stretch == stretches_.begin() ? LogicalTime(0) : std::prev(stretch)->second;
  return (to - from).value();
}

void Residents::add(ValueId value, const LiveRange& range) {
  by_start_.emplace(range.start, value);
  LiveRange joined = range;
  auto behind = stretches_.upper_bound(range.end);
  gaps_.erase(gaps_.find(gap_before(behind)));
  while (behind != stretches_.begin()) {
    const auto stretch = std::prev(behind);
    if (stretch->second < joined.start) break;
    joined.start = std::min(joined.start, stretch->first);
    joined.end = std::max(joined.end, stretch->second);
    gaps_.erase(gaps_.find(gap_before(stretch)));
    behind = stretches_.erase(stretch);
  }
  const auto placed = stretches_.emplace_hint(behind, joined.start, joined.end);
  gaps_.insert(gap_before(placed));
  gaps_.insert(gap_before(behind));
}

bool Residents::surely_overlap(const LiveRange& range) const {
  // Stretches have gaps between them, so of those that start before the range ends the last one
  // tells: it starts within the range, or nothing that starts earlier reaches as far.
  const auto behind = stretches_.lower_bound(range.end);
  if (behind == stretches_.begin()) return false;
  const auto& [start, end] = *std::prev(behind);
  return start > range.start || std::min(end, range.end) > range.start;
}

}  // namespace spillway
