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

HeapResult pack(const std::vector<HeapItem>& items, const std::vector<std::uint32_t>& order,
                const StartTimes& times) {
  HeapResult result;
  result.offsets.resize(items.size());
  OccupiedRanges occupied(times.count());
  std::int64_t heap_end = 0;
  std::vector<OffsetRange> used;
  for (const std::uint32_t i : order) {
    const HeapItem& item = items[i];
    const std::int64_t size = largest_use(item).value();
    used.clear();
    for (const HeapItem::Use& use : item.uses)
      occupied.collect(times[use.start], times[use.end], used);
    const std::int64_t offset = best_fit(used, size);
    for (const HeapItem::Use& use : item.uses)
      occupied.occupy(times[use.start], times[use.end], {offset, align(offset + size)});
    result.offsets[i] = Bytes(offset);
    heap_end = std::max(heap_end, offset + size);
  }
  result.size = Bytes(heap_end);
  return result;
}

/// What the two orders sort by.
struct SortKey {
  std::int64_t size = 0;
  std::int64_t duration = 0;
  std::uint32_t tie_break = 0;
  std::uint32_t item = 0;
};

}  // namespace

Bytes largest_use(const HeapItem& item) {
  Bytes size(0);
  for (const HeapItem::Use& use : item.uses) size = std::max(size, use.size);
  return size;
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
  const auto pack_in_order = [&](const std::vector<SortKey>& keys) {
    std::vector<std::uint32_t> order;
    for (const SortKey& key : keys) order.push_back(key.item);
    return pack(items, order, times);
  };
  const HeapResult by_size = pack_in_order(spatial);
  const HeapResult by_time = pack_in_order(temporal);
  return by_time.size < by_size.size ? by_time : by_size;
}

}  // namespace spillway
