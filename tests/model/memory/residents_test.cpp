#include "model/memory/residents.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace spillway {
namespace {

LiveRange range(std::int32_t start, std::int32_t end) {
  return {LogicalTime(start), LogicalTime(end)};
}

TEST_CASE("what overlaps for more than the moment at which one ends and the other starts") {
  // position    0   1   2   3   4   5   6   7
  // residents       [=======]       |   [===]       (the one at 5 lives for a moment)
  //                         [---]
  Residents residents(LogicalTime(8));
  residents.add(ValueId(0), range(1, 3));
  residents.add(ValueId(1), range(6, 7));
  residents.add(ValueId(2), range(5, 5));
  residents.add(ValueId(3), range(3, 4));
  struct Row {
    const char* name;
    LiveRange range;
    bool expected;
  };
  const Row rows[] = {
      {"up to the first", range(0, 1), false},
      {"into the first", range(0, 2), true},
      {"a moment within", range(2, 2), false},
      {"across where two meet", range(2, 4), true},
      {"between two", range(4, 5), false},
      {"over one of a moment", range(4, 6), true},
      {"from one of a moment on", range(5, 6), false},
      {"behind the last", range(7, 8), false},
      {"over all", range(0, 8), true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(residents.surely_overlap(row.range) == row.expected);
  }
  CHECK(residents.longest_gap() == 1);
  CHECK(Residents(LogicalTime(8)).longest_gap() == 8);
  CHECK(!Residents(LogicalTime(8)).surely_overlap(range(0, 8)));
}

TEST_CASE("of residents that start together the older stands first") {
  Residents residents(LogicalTime(9));
  for (const std::uint32_t k : {7u, 2u, 5u})
    residents.add(ValueId(k), range(static_cast<std::int32_t>(k % 2), 3));
  std::vector<ValueId> order;
  for (const auto& [start, value] : residents.by_start()) order.push_back(value);
  CHECK(order == std::vector{ValueId(2), ValueId(7), ValueId(5)});
}

TEST_CASE("the same as comparing with every resident") {
  int overlapping = 0;
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::int32_t n) {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(n));
    };
    const std::int32_t end = 4 + below(60);
    const auto any_range = [&] {
      const std::int32_t start = below(end);
      return range(start, std::min(end, start + below(6)));
    };
    std::vector<LiveRange> kept;
    Residents residents((LogicalTime(end)));
    for (std::uint32_t k = 0; k < 30; ++k) {
      const LiveRange asked = any_range();
      // A moment in which two residents meet belongs to the stretch that they form.
      const bool overlaps =
          asked.start < asked.end && std::ranges::any_of(kept, [&](const LiveRange& one) {
            const bool within = asked.start < one.start && one.start < asked.end;
            return within || std::max(asked.start, one.start) < std::min(asked.end, one.end);
          });
      REQUIRE(residents.surely_overlap(asked) == overlaps);
      if (!overlaps) REQUIRE((asked.end - asked.start).value() <= residents.longest_gap());
      overlapping += overlaps ? 1 : 0;
      // The longest time at which nothing is there.
      std::vector<bool> used(static_cast<std::size_t>(end), false);  // by interval t to t + 1
      std::vector<bool> met(static_cast<std::size_t>(end) + 1, false);
      for (const LiveRange& one : kept)
        for (std::int32_t t = one.start.value(); t <= one.end.value(); ++t) {
          met[static_cast<std::size_t>(t)] = true;
          if (t < one.end.value()) used[static_cast<std::size_t>(t)] = true;
        }
      std::int32_t longest = 0;
      std::int32_t length = 0;
      for (std::size_t t = 0; t < used.size(); ++t) {
        if (used[t] || met[t]) length = 0;
        if (!used[t]) longest = std::max(longest, ++length);
      }
      REQUIRE(residents.longest_gap() == longest);
      if (overlaps && below(3) > 0) continue;  // sometimes one over another, as XLA allows at ends
      kept.push_back(asked);
      residents.add(ValueId(k), asked);
    }
  }
  CHECK(overlapping > 1000);
}

}  // namespace
}  // namespace spillway
