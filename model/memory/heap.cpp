#include "model/memory/heap.h"

#include <algorithm>
#include <limits>

namespace spillway {
namespace {

struct Chunk {
  std::int64_t offset = 0, end = 0;
};

std::int64_t align(std::int64_t offset) {
  const std::int64_t a = kHeapAlignment.value();
  return (offset + a - 1) / a * a;
}

/// Chunks by the times they are in use. A segment tree over time: a placed chunk is stored at the
/// O(log n) nodes that cover its interval, and a query collects those above and below its own.
class TimeIndex {
 public:
  explicit TimeIndex(std::int32_t times) {
    while (leaves_ < static_cast<std::size_t>(times)) leaves_ *= 2;
    at_.resize(2 * leaves_);
    below_.resize(2 * leaves_, 0);
  }

  void add(std::int32_t start, std::int32_t end, Chunk chunk) {
    for (auto [left, right] = bounds(start, end); left < right; left /= 2, right /= 2) {
      if (left & 1) put(left++, chunk);
      if (right & 1) put(--right, chunk);
    }
  }

  /// Appends every chunk in use at some time from `start` to `end`; some may come twice.
  void collect(std::int32_t start, std::int32_t end, std::vector<Chunk>& out) const {
    auto [left, right] = bounds(start, end);
    for (std::size_t up = left / 2; up > 0; up /= 2) append(up, out);
    for (std::size_t up = (right - 1) / 2; up > 0; up /= 2) append(up, out);
    for (; left < right; left /= 2, right /= 2) {
      if (left & 1) collect_below(left++, out);
      if (right & 1) collect_below(--right, out);
    }
  }

 private:
  std::pair<std::size_t, std::size_t> bounds(std::int32_t start, std::int32_t end) const {
    return {leaves_ + static_cast<std::size_t>(start), leaves_ + static_cast<std::size_t>(end) + 1};
  }
  void put(std::size_t node, Chunk chunk) {
    at_[node].push_back(chunk);
    for (; node > 0; node /= 2) ++below_[node];
  }
  void append(std::size_t node, std::vector<Chunk>& out) const {
    out.insert(out.end(), at_[node].begin(), at_[node].end());
  }
  void collect_below(std::size_t node, std::vector<Chunk>& out) const {
    if (below_[node] == 0) return;
    append(node, out);
    if (node >= leaves_) return;
    collect_below(2 * node, out);
    collect_below(2 * node + 1, out);
  }

  std::size_t leaves_ = 1;
  std::vector<std::vector<Chunk>> at_;
  std::vector<std::uint32_t> below_;  ///< chunks stored at a node and under it
};

/// The offset of the smallest gap between `used` chunks that holds `size`.
std::int64_t best_fit(std::vector<Chunk>& used, std::int64_t size, std::int64_t first_size) {
  std::ranges::sort(used, {}, &Chunk::offset);
  std::int64_t best = -1;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  std::int64_t free_from = 0;
  std::int64_t used_to = 0;
  const auto consider = [&](std::int64_t gap_end, bool last) {
    // A gap must hold the first use to be looked at, and the largest to be taken.
    if (!last && gap_end - free_from < first_size) return;
    if (gap_end - size < free_from) return;
    const std::int64_t gap = gap_end - free_from;
    if (best >= 0 && gap >= best_gap) return;
    best = free_from;
    best_gap = gap;
  };
  for (const Chunk& chunk : used) {
    if (chunk.offset >= used_to) {
      consider(chunk.offset, false);
      used_to = chunk.end;
    } else {
      used_to = std::max(used_to, chunk.end);
    }
    free_from = std::max(free_from, align(used_to));
  }
  consider(std::numeric_limits<std::int64_t>::max(), true);
  return best;
}

HeapResult pack(const std::vector<HeapItem>& items, const std::vector<std::uint32_t>& order,
                std::int32_t times) {
  HeapResult result;
  result.offsets.resize(items.size());
  TimeIndex index(times);
  std::int64_t heap_end = 0;
  std::vector<Chunk> used;
  for (const std::uint32_t i : order) {
    const HeapItem& item = items[i];
    const std::int64_t size = largest_use(item).value();
    used.clear();
    for (const HeapItem::Use& use : item.uses) index.collect(use.start, use.end, used);
    const std::int64_t offset = best_fit(used, size, item.uses[0].size.value());
    for (const HeapItem::Use& use : item.uses)
      index.add(use.start, use.end, {offset, offset + size});
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
  std::int32_t times = 1;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const HeapItem::Use& first = items[i].uses[0];
    std::int32_t start = first.start;
    std::int32_t end = first.end;
    for (const HeapItem::Use& use : items[i].uses) {
      start = std::min(start, use.start);
      end = std::max(end, use.end);
    }
    times = std::max(times, end + 1);
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
  const auto pack_in_order = [&](const std::vector<SortKey>& keys) {
    std::vector<std::uint32_t> order;
    for (const SortKey& key : keys) order.push_back(key.item);
    return pack(items, order, times);
  };
  HeapResult by_size = pack_in_order(spatial);
  HeapResult by_time = pack_in_order(temporal);
  by_time.temporal = true;
  return by_time.size < by_size.size ? by_time : by_size;
}

}  // namespace spillway
