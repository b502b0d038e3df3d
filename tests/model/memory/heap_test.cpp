#include "model/memory/heap.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace spillway {
namespace {

/// Sizes and offsets below are in units of the alignment.
constexpr std::int64_t kUnit = kHeapAlignment.value();

HeapItem item(std::int32_t start, std::int32_t end, std::int64_t units, std::uint32_t tie_break) {
  return {{{start, end, Bytes(units * kUnit)}}, tie_break};
}

void check_packing(const std::vector<HeapItem>& items, std::int64_t size,
                   const std::vector<std::int64_t>& offsets) {
  const HeapResult result = pack_heap(items);
  CHECK(result.size == Bytes(size * kUnit));
  REQUIRE(result.offsets.size() == offsets.size());
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    CAPTURE(k);
    CHECK(result.offsets[k] == Bytes(offsets[k] * kUnit));
  }
}

TEST_CASE("large ones first leaves room for small ones") {
  //        by size         by time
  //   4                    a
  //   3    a               a
  //   2    a c c c         b b
  //   1    b b             b b
  //   0    b b               c c c
  //        1 2 3 4         1 2 3 4     time
  check_packing({item(1, 1, 2, 0), item(1, 2, 2, 1), item(2, 4, 1, 2)}, 4, {2, 0, 2});
}

TEST_CASE("long ones first keeps short ones from standing in their way") {
  // d lives longest and takes the bottom; by size b would take it, and push d and then c up.
  check_packing({item(3, 4, 2, 0), item(2, 2, 3, 1), item(3, 3, 2, 2), item(1, 3, 2, 3)}, 6,
                {2, 2, 4, 0});
}

TEST_CASE("the smallest gap that holds it") {
  // Three long ones and two short ones between them leave, from time 5 on, gaps of 9 and of 7:
  //   10 at 0, (9 at 10), 8 at 19, (7 at 27), 6 at 34
  std::vector<HeapItem> items = {item(0, 9, 10, 0), item(0, 4, 9, 1), item(0, 9, 8, 2),
                                 item(0, 4, 7, 3), item(0, 9, 6, 4)};
  items.push_back(item(5, 9, 5, 5));  // into the gap of 7, which leaves 2
  items.push_back(item(5, 9, 5, 6));  // into that of 9, which leaves 4
  items.push_back(item(5, 9, 4, 7));  // fits exactly
  items.push_back(item(5, 9, 3, 8));  // fits nowhere but above
  // Later, and twenty times the case above, so that the order by size wins.
  items.insert(items.end(), {item(21, 21, 40, 9), item(21, 22, 40, 10), item(22, 24, 20, 11)});
  check_packing(items, 80, {0, 10, 19, 27, 34, 27, 10, 15, 40, 40, 0, 40});
}

TEST_CASE("equal items go in the order of their ties") {
  check_packing({item(0, 1, 1, 7), item(0, 1, 1, 3), item(0, 1, 1, 5)}, 3, {2, 0, 1});
}

TEST_CASE("what meets in time, ends included, does not share a place") {
  check_packing({item(0, 2, 1, 0), item(2, 4, 1, 1)}, 2, {0, 1});
  check_packing({item(0, 2, 1, 0), item(3, 4, 1, 1)}, 1, {0, 0});
}

TEST_CASE("offsets are aligned, the end is not") {
  const HeapResult result =
      pack_heap({{{{0, 1, Bytes(100)}}, 0}, {{{0, 1, Bytes(300)}}, 1}, {{{0, 1, Bytes(1)}}, 2}});
  CHECK(result.offsets == std::vector{Bytes(512), Bytes(0), Bytes(768)});
  CHECK(result.size == Bytes(769));
  CHECK(pack_heap({}).size == Bytes(0));
}

TEST_CASE("an item with several uses keeps its place free only while it is used") {
  HeapItem twice{{{0, 1, Bytes(kUnit)}, {6, 7, Bytes(3 * kUnit)}}, 0};
  CHECK(largest_use(twice) == Bytes(3 * kUnit));
  // The place is as large as its largest use, and between its uses it is free for others.
  check_packing({twice, item(2, 5, 3, 1), item(1, 2, 1, 2)}, 4, {0, 0, 3});
}

TEST_CASE("no heap is smaller than what is live together") {
  CHECK(smallest_heap({}) == Bytes(0));
  // Three at time 2; the second use of the last one meets its first, and takes no more.
  HeapItem twice{{{2, 4, Bytes(kUnit)}, {4, 6, Bytes(kUnit)}}, 2};
  CHECK(smallest_heap({item(0, 2, 5, 0), item(1, 3, 2, 1), twice}) == Bytes(8 * kUnit));
  // Only the uppermost need not fill what it takes, and any of them may be that.
  const HeapItem byte{{{0, 1, Bytes(1)}}, 0};
  const HeapItem wide{{{0, 1, Bytes(300)}}, 1};
  CHECK(smallest_heap({byte, wide}) == Bytes(513));
  CHECK(pack_heap({byte, wide}).size == Bytes(513));
  CHECK(smallest_heap({byte, wide, item(2, 3, 3, 2)}) == Bytes(3 * kUnit));
}

/// Best fit as one would explain it: try every place where it could start.
std::int64_t obvious_place(const std::vector<HeapItem>& items,
                           const std::vector<std::optional<std::int64_t>>& placed, std::size_t i) {
  struct Used {
    std::int64_t begin, end;
  };
  std::vector<Used> used;
  std::vector<std::int64_t> starts = {0};
  for (std::size_t other = 0; other < items.size(); ++other) {
    if (!placed[other]) continue;
    const bool meets = std::ranges::any_of(items[i].uses, [&](const HeapItem::Use& a) {
      return std::ranges::any_of(items[other].uses, [&](const HeapItem::Use& b) {
        return a.start <= b.end && b.start <= a.end;
      });
    });
    if (!meets) continue;
    const std::int64_t end = *placed[other] + largest_use(items[other]).value();
    used.push_back({*placed[other], end});
    starts.push_back((end + kUnit - 1) / kUnit * kUnit);
  }
  std::ranges::sort(starts);
  std::int64_t best = 0;
  std::int64_t best_gap = -1;
  for (const std::int64_t start : starts) {
    std::int64_t gap_end = std::numeric_limits<std::int64_t>::max();
    bool inside = false;
    for (const Used& u : used) {
      inside |= u.begin <= start && start < u.end;
      if (u.begin >= start) gap_end = std::min(gap_end, u.begin);
    }
    const std::int64_t gap = gap_end - start;
    if (inside || gap < largest_use(items[i]).value()) continue;
    if (best_gap >= 0 && gap >= best_gap) continue;
    best = start;
    best_gap = gap;
  }
  return best;
}

HeapResult obvious_packing(const std::vector<HeapItem>& items, bool temporal) {
  const auto first_use = [](const HeapItem& x) { return x.uses[0].end - x.uses[0].start; };
  const auto all_uses = [](const HeapItem& x) {
    std::int32_t start = x.uses[0].start;
    std::int32_t end = x.uses[0].end;
    for (const HeapItem::Use& use : x.uses)
      start = std::min(start, use.start), end = std::max(end, use.end);
    return end - start;
  };
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < items.size(); ++k) order.push_back(k);
  std::ranges::sort(order, [&](std::size_t x, std::size_t y) {
    const HeapItem& a = items[x];
    const HeapItem& b = items[y];
    if (temporal && all_uses(a) != all_uses(b)) return all_uses(a) > all_uses(b);
    if (a.uses[0].size != b.uses[0].size) return a.uses[0].size > b.uses[0].size;
    if (!temporal && first_use(a) != first_use(b)) return first_use(a) > first_use(b);
    return a.tie_break < b.tie_break;
  });
  HeapResult result;
  std::vector<std::optional<std::int64_t>> placed(items.size());
  for (const std::size_t k : order) {
    placed[k] = obvious_place(items, placed, k);
    result.size = std::max(result.size, Bytes(*placed[k]) + largest_use(items[k]));
  }
  for (const auto& offset : placed) result.offsets.push_back(Bytes(*offset));
  return result;
}

TEST_CASE("the same as best fit written the obvious way") {
  int temporal_wins = 0;
  int as_small = 0;  // as what is live together
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](int n) {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(n));
    };
    const std::int32_t times = 4 + below(30);
    std::vector<HeapItem> items(static_cast<std::size_t>(1 + below(40)));
    for (std::uint32_t k = 0; k < items.size(); ++k) {
      items[k].tie_break = k;
      std::int32_t start = below(times);
      const int uses = 1 + (below(3) == 0 ? below(4) : 0);
      for (int u = 0; u < uses; ++u) {
        const std::int32_t end = start + below(times / 2);
        // Odd sizes, so that ends are not aligned; few of them, so that there are ties.
        items[k].uses.push_back({start, end, Bytes(1 + 200 * below(8))});
        start = end + below(4);  // uses of one item may meet
      }
    }
    const HeapResult by_size = obvious_packing(items, false);
    const HeapResult by_time = obvious_packing(items, true);
    const bool temporal = by_time.size < by_size.size;
    const HeapResult& expected = temporal ? by_time : by_size;
    temporal_wins += temporal ? 1 : 0;
    const HeapResult found = pack_heap(items);
    REQUIRE(smallest_heap(items) <= expected.size);
    as_small += smallest_heap(items) == expected.size ? 1 : 0;
    REQUIRE(found.size == expected.size);
    REQUIRE(found.offsets == expected.offsets);
  }
  CHECK(temporal_wins > 150);  // both orders are tried in earnest
  CHECK(temporal_wins < 2850);
  CHECK(as_small > 150);
  CHECK(as_small < 2850);
}

}  // namespace
}  // namespace spillway
