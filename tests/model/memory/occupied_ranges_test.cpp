#include "model/memory/occupied_ranges.h"

#include <doctest/doctest.h>

#include <random>

namespace spillway {
namespace {

std::vector<OffsetRange> listed(const OffsetSet& set) {
  return {set.ranges().begin(), set.ranges().end()};
}

TEST_CASE("ranges that touch or overlap are joined") {
  struct Row {
    const char* name;
    std::vector<OffsetRange> added, expected;
  };
  const Row rows[] = {
      {"none", {}, {}},
      {"one", {{4, 6}}, {{4, 6}}},
      {"apart", {{4, 6}, {0, 2}}, {{0, 2}, {4, 6}}},
      {"touching below", {{4, 6}, {2, 4}}, {{2, 6}}},
      {"touching above", {{4, 6}, {6, 8}}, {{4, 8}}},
      {"between two", {{0, 2}, {4, 6}, {2, 4}}, {{0, 6}}},
      {"over several", {{0, 1}, {2, 3}, {4, 5}, {8, 9}, {1, 6}}, {{0, 6}, {8, 9}}},
      {"inside", {{0, 9}, {3, 4}}, {{0, 9}}},
      {"twice", {{3, 4}, {3, 4}}, {{3, 4}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    OffsetSet set;
    for (const OffsetRange& range : row.added) {
      const std::vector<OffsetRange> before = listed(set);
      const bool added = set.add(range);
      CHECK(added == (listed(set) != before));
    }
    CHECK(listed(set) == row.expected);
  }
}

std::vector<OffsetRange> ask(const OccupiedRanges& occupied, std::int32_t start, std::int32_t end) {
  std::vector<OffsetRange> found;
  occupied.collect(start, end, found);
  OffsetSet set;
  for (const OffsetRange& range : found) set.add(range);
  return listed(set);
}

TEST_CASE("both ends of a time count") {
  OccupiedRanges occupied(8);
  occupied.occupy(2, 5, {10, 20});
  CHECK(ask(occupied, 0, 1).empty());
  CHECK(ask(occupied, 0, 2) == std::vector<OffsetRange>{{10, 20}});
  CHECK(ask(occupied, 3, 3) == std::vector<OffsetRange>{{10, 20}});
  CHECK(ask(occupied, 5, 7) == std::vector<OffsetRange>{{10, 20}});
  CHECK(ask(occupied, 6, 7).empty());
  OccupiedRanges moment(1);
  moment.occupy(0, 0, {0, 1});
  CHECK(ask(moment, 0, 0) == std::vector<OffsetRange>{{0, 1}});
}

TEST_CASE("the same as remembering everything") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::int32_t n) {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(n));
    };
    const std::int32_t times = 1 + below(40);
    struct Kept {
      std::int32_t start, end;
      OffsetRange range;
    };
    std::vector<Kept> kept;
    OccupiedRanges occupied(times);
    for (int k = 0; k < 60; ++k) {
      const std::int32_t start = below(times);
      const std::int32_t end = start + below(times - start);
      OffsetSet expected;
      for (const Kept& one : kept)
        if (one.start <= end && start <= one.end) expected.add(one.range);
      REQUIRE(ask(occupied, start, end) == listed(expected));
      const std::int64_t offset = below(50);
      kept.push_back({start, end, {offset, offset + 1 + below(6)}});
      occupied.occupy(start, end, kept.back().range);
    }
  }
}

}  // namespace
}  // namespace spillway
