#include "sim/engine/sharing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/sim/engine/random_program.h"

namespace spillway::engine {
namespace {

constexpr ResourceId kA(0), kB(1);

Fraction part(std::int64_t numerator, std::int64_t denominator) {
  return Fraction(kWhole.value() / denominator * numerator +
                  kWhole.value() % denominator * numerator / denominator);
}

struct Asking {
  std::vector<Load> loads;
  std::int32_t weight = 1;
};

std::vector<Contender> divide(const std::vector<Asking>& asking,
                              const IdVector<ResourceId, Resource>& resources) {
  Sharing sharing(resources);
  std::vector<Contender> running;
  for (const Asking& one : asking) {
    sharing.add(one.loads);
    running.push_back({
        .loads = one.loads,
        .weight = one.weight,
    });
  }
  sharing.divide(running);
  for (const Asking& one : asking) sharing.remove(one.loads);
  CHECK_FALSE(sharing.contended());
  return running;
}

std::vector<Contender> divide(const std::vector<Asking>& asking, std::size_t resources) {
  return divide(asking, IdVector<ResourceId, Resource>(resources));
}

TEST_CASE("speeds are max-min fair") {
  const Fraction all = kWhole, half = part(1, 2), quarter = part(1, 4);
  struct Row {
    std::string name;
    std::vector<Asking> asking;
    std::vector<Fraction> speeds;
    std::string limits;  // by contender: a resource, or . for none
  };
  const Row rows[] = {
      {"one alone", {{{{kA, all}}}}, {all}, "."},
      {"two equal", {{{{kA, all}}}, {{{kA, all}}}}, {half, half}, "AA"},
      {"three equal",
       {{{{kA, all}}}, {{{kA, all}}}, {{{kA, all}}}},
       {part(1, 3), part(1, 3), part(1, 3)},
       "AAA"},
      {"three halves",
       {{{{kA, half}}}, {{{kA, half}}}, {{{kA, half}}}},
       {part(2, 3), part(2, 3), part(2, 3)},
       "AAA"},
      {"what fits exactly is not contention",
       {{{{kA, half}}}, {{{kA, quarter}}}, {{{kA, quarter}}}},
       {all, all, all},
       "..."},
      {"a compute-bound kernel and a copy", {{{{kA, quarter}}}, {{{kA, half}}}}, {all, all}, ".."},
      {"a memory-bound kernel and a copy: both slow",
       {{{{kA, all}}}, {{{kA, quarter}}}},
       {part(4, 5), part(4, 5)},
       "AA"},
      {"weights", {{{{kA, all}}, 1}, {{{kA, all}}, 3}}, {quarter, part(3, 4)}, "AA"},
      {"a weight that gives equal use, not equal slowing",
       {{{{kA, all}}, 3}, {{{kA, part(3, 4)}}, 4}},
       {half, part(2, 3)},
       "AA"},
      {"a weight beyond full speed is left to others",
       {{{{kA, all}}, 1}, {{{kA, half}}, 30'000}},
       {half, all},
       "A."},
      {"what one cannot use goes to the other",
       {{{{kA, all}, {kB, all}}}, {{{kA, all}}}, {{{kA, all}}}, {{{kB, all}}}},
       {part(1, 3), part(1, 3), part(1, 3), part(2, 3)},
       "AAAB"},
      {"both run out at once: the first demand is named",
       {{{{kB, all}, {kA, all}}}, {{{kA, all}, {kB, all}}}},
       {half, half},
       "BA"},
      {"who does not touch it does not notice",
       {{{{kA, all}}}, {{{kA, all}}}, {{{kB, all}}}},
       {half, half, all},
       "AA."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::vector<Contender> found = divide(row.asking, 2);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      // One unit off at most: 2^-48 of full speed.
      CHECK(std::abs((found[i].speed - row.speeds[i]).value()) <= 1);
      CHECK((found[i].limit ? "AB"[found[i].limit->index] : '.') == row.limits[i]);
    }
  }
}

// A memory of 32 B/s that gives 48 B/s to whoever only reads, and 40 B/s to whoever only writes.
TEST_CASE("a two-sided resource is felt while both sides of it are in use") {
  const auto use = [](std::int64_t rate, Side side) { return Load{kA, part(rate, 32), side}; };
  const Load read = use(48, Side::kOne), write = use(40, Side::kOther);
  struct Row {
    std::string name;
    std::vector<Asking> asking;
    std::vector<Fraction> speeds;
    std::string limits;
  };
  const Row rows[] = {
      {"one reads", {{{read}}}, {kWhole}, "."},
      {"two read, what holds them is elsewhere", {{{read}}, {{read}}}, {kWhole, kWhole}, ".."},
      {"one reads, one writes: (48 + 40) s = 32",
       {{{read}}, {{write}}},
       {part(4, 11), part(4, 11)},
       "AA"},
      {"equal bytes, by weights: 16 + 16",
       {{{read}, 40}, {{write}, 48}},
       {part(1, 3), part(2, 5)},
       "AA"},
      {"what does both feels it alone", {{{use(64, Side::kBoth)}}}, {part(1, 2)}, "A"},
      {"little of both, beside one side",
       {{{use(8, Side::kBoth)}}, {{read}}},
       {part(4, 7), part(4, 7)},
       "AA"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    IdVector<ResourceId, Resource> memory;
    memory.push({.capacity = 32, .two_sided = true});
    const std::vector<Contender> found = divide(row.asking, memory);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs((found[i].speed - row.speeds[i]).value()) <= 2);
      CHECK((found[i].limit ? 'A' : '.') == row.limits[i]);
    }
  }
}

/// The textbook's criterion: nothing is used beyond its capacity, and whoever is below full speed
/// uses something that is used up and on which nobody else of the same weight is faster.
TEST_CASE("whoever is slowed has a bottleneck") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    testing::Dice dice(seed);
    const std::size_t resources = static_cast<std::size_t>(dice.roll(1, 6));
    std::vector<Asking> asking(static_cast<std::size_t>(dice.roll(1, 8)));
    for (Asking& one : asking) {
      one.weight = static_cast<std::int32_t>(dice.chance(50) ? 1 : dice.roll(1, kLargestWeight));
      for (std::size_t r = 0; r < resources; ++r)
        if (dice.chance(50)) one.loads.push_back({ResourceId(r), part(dice.roll(1, 100), 100)});
    }
    const std::vector<Contender> found = divide(asking, resources);
    std::vector<double> used(resources, 0);
    for (const Contender& c : found)
      for (const Load& load : c.loads)
        used[load.resource.index] += ratio(load.use, kWhole) * ratio(c.speed, kWhole);
    for (const double u : used) CHECK(u <= 1 + 1e-12);
    for (const Contender& c : found) {
      CHECK(c.speed > Fraction(0));
      CHECK(c.speed <= kWhole);
      CHECK((c.speed < kWhole) == c.limit.has_value());
      if (!c.limit) continue;
      CHECK(used[c.limit->index] >= 1 - 1e-9);
      for (const Contender& other : found)
        for (const Load& load : other.loads)
          if (load.resource == *c.limit)
            CHECK(ratio(other.speed, kWhole) / other.weight <=
                  ratio(c.speed, kWhole) / c.weight + 1e-9);
    }
  }
}

}  // namespace
}  // namespace spillway::engine
