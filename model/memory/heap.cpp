#include "model/memory/heap.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "model/base/check.h"
#include "model/memory/occupied_ranges.h"

namespace spillway {
namespace {

std::int64_t align(std::int64_t offset) {
  const std::int64_t a = kHeapAlignment.value();
  return (offset + a - 1) / a * a;
}

/// The offset of the smallest gap between `used` ranges that holds `size`. Ranges may overlap, and
/// begin and end at multiples of the alignment.
std::int64_t best_fit(std::vector<OffsetRange>& used, std::int64_t size) {
  std::ranges::sort(used, {}, &OffsetRange::begin);
  std::optional<std::int64_t> best;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  std::int64_t free_from = 0;
  for (const OffsetRange& range : used) {
    const std::int64_t gap = range.begin - free_from;
    if (gap >= size && gap < best_gap) {
      best = free_from;
      best_gap = gap;
    }
    free_from = std::max(free_from, range.end);
  }
  return best.value_or(free_from);
}

/// Times without those at which nothing starts: only starts can fall within a buffer's life.
class StartTimes {
 public:
  explicit StartTimes(const std::vector<HeapItem>& items) {
    for (const HeapItem& item : items)
      for (const HeapItem::Use& use : item.uses) {
        check(use.start >= 0 && use.end >= use.start, "a heap use ends before it starts");
        const auto last = static_cast<std::size_t>(use.end);
        if (rank_.size() <= last) rank_.resize(last + 1, 0);
        rank_[static_cast<std::size_t>(use.start)] = 1;
      }
    std::partial_sum(rank_.begin(), rank_.end(), rank_.begin());
  }
  std::int32_t count() const { return rank_.empty() ? 0 : rank_.back(); }
  /// The number of the last start at or before a time.
  std::int32_t operator[](std::int32_t time) const {
    return rank_[static_cast<std::size_t>(time)] - 1;
  }

 private:
  std::vector<std::int32_t> rank_;  ///< how many starts there are up to and with each time
};

/// What the two orders sort by.
struct SortKey {
  std::int64_t size = 0;
  std::int64_t duration = 0;
  std::uint32_t tie_break = 0;
  std::uint32_t item = 0;
};

/// No packing is smaller than the items that are live together: whatever their order, each of them
/// but the uppermost takes a multiple of the alignment.
Bytes smallest_possible(const std::vector<HeapItem>& items, const StartTimes& times) {
  struct Change {
    std::int64_t aligned = 0;
    std::int32_t padded = 0;  ///< items that do not fill what they take
  };
  std::vector<Change> changes(static_cast<std::size_t>(times.count()) + 1);
  std::int64_t most_padding = 0;
  for (const HeapItem& item : items) {
    const std::int64_t size = largest_use(item).value();
    const std::int64_t padding = align(size) - size;
    most_padding = std::max(most_padding, padding);
    std::int32_t counted = -1;  // uses of one item may meet, and take its place once
    for (const HeapItem::Use& use : item.uses) {
      const std::int32_t from = std::max(times[use.start], counted + 1);
      counted = std::max(counted, times[use.end]);
      if (from > counted) continue;
      Change& first = changes[static_cast<std::size_t>(from)];
      Change& behind = changes[static_cast<std::size_t>(counted) + 1];
      first.aligned += align(size);
      behind.aligned -= align(size);
      first.padded += padding > 0 ? 1 : 0;
      behind.padded -= padding > 0 ? 1 : 0;
    }
  }
  Change live;
  std::int64_t most = 0;
  for (const Change& change : changes) {
    live.aligned += change.aligned;
    live.padded += change.padded;
    most = std::max(most, live.aligned - (live.padded > 0 ? most_padding : 0));
  }
  return Bytes(most);
}

/// Empty as soon as the block is no smaller than `limit`. Adds to `seen` what it looks at.
std::optional<HeapResult> pack(const std::vector<HeapItem>& items,
                               const std::vector<SortKey>& order, const StartTimes& times,
                               std::int64_t limit, std::int64_t& seen) {
  HeapResult result;
  result.offsets.resize(items.size());
  OccupiedRanges occupied(times.count());
  std::int64_t heap_end = 0;
  std::vector<OffsetRange> used;
  for (const SortKey& key : order) {
    const HeapItem& item = items[key.item];
    const std::int64_t size = largest_use(item).value();
    used.clear();
    for (const HeapItem::Use& use : item.uses)
      occupied.collect(times[use.start], times[use.end], used);
    seen += static_cast<std::int64_t>(used.size());
    const std::int64_t offset = best_fit(used, size);
    for (const HeapItem::Use& use : item.uses)
      occupied.occupy(times[use.start], times[use.end], {offset, align(offset + size)});
    result.offsets[key.item] = Bytes(offset);
    heap_end = std::max(heap_end, offset + size);
    if (heap_end >= limit) return std::nullopt;
  }
  result.size = Bytes(heap_end);
  return result;
}

}  // namespace

Bytes largest_use(const HeapItem& item) {
  Bytes size(0);
  for (const HeapItem::Use& use : item.uses) size = std::max(size, use.size);
  return size;
}

Bytes smallest_heap(const std::vector<HeapItem>& items) {
  return smallest_possible(items, StartTimes(items));
}

HeapResult pack_heap(const std::vector<HeapItem>& items) {
  std::vector<SortKey> spatial;
  std::vector<SortKey> temporal;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    check(!items[i].uses.empty() && largest_use(items[i]) > Bytes(0), "a heap item needs no place");
    const HeapItem::Use& first = items[i].uses[0];
    std::int32_t start = first.start;
    std::int32_t end = first.end;
    for (const HeapItem::Use& use : items[i].uses) {
      start = std::min(start, use.start);
      end = std::max(end, use.end);
    }
    spatial.push_back({first.size.value(), first.end - first.start, items[i].tie_break, i});
    temporal.push_back({first.size.value(), end - start, items[i].tie_break, i});
  }
  std::ranges::sort(spatial, [](const SortKey& a, const SortKey& b) {
    if (a.size != b.size) return a.size > b.size;
    if (a.duration != b.duration) return a.duration > b.duration;
    return a.tie_break < b.tie_break;
  });
  std::ranges::sort(temporal, [](const SortKey& a, const SortKey& b) {
    if (a.duration != b.duration) return a.duration > b.duration;
    if (a.size != b.size) return a.size > b.size;
    return a.tie_break < b.tie_break;
  });
  const StartTimes times(items);
  std::int64_t seen = 0;
  HeapResult best = *pack(items, spatial, times, std::numeric_limits<std::int64_t>::max(), seen);
  // The second order counts only where it gives a smaller block.
  if (best.size > smallest_possible(items, times))
    if (auto by_time = pack(items, temporal, times, best.size.value(), seen))
      best = *std::move(by_time);
  best.ranges_seen = seen;
  return best;
}

}  // namespace spillway
