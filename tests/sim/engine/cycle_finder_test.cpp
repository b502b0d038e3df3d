#include "sim/engine/cycle_finder.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <string>

namespace spillway::engine {
namespace {

TEST_CASE("a repeated state is found, and by how much it repeats") {
  struct Row {
    std::string name;
    std::function<std::int64_t(std::int64_t)> state;  // by iteration
    std::int64_t found_at;                            // iteration; -1: not within 10,000
    std::int64_t period;
  };
  const Row rows[] = {
      {"the same from the start", [](std::int64_t) { return 7; }, 1, 1},
      {"the same from iteration 5", [](std::int64_t i) { return std::min<std::int64_t>(i, 5); }, 6,
       1},
      {"the shortest of its periods", [](std::int64_t i) { return i < 3 ? -1 - i : i % 2; }, 5, 2},
      {"the longest that is found at once", [](std::int64_t i) { return i % 16; }, 16, 16},
      {"a longer one, once the anchor is old enough", [](std::int64_t i) { return i % 17; }, 49,
       17},
      {"a long one after a long transient",
       [](std::int64_t i) { return i < 500 ? -1 - i : i % 100; }, 612, 100},
      {"never", [](std::int64_t i) { return i; }, -1, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CycleFinder finder;
    for (int again = 0; again < 2; ++again) {  // a second loop starts from nothing
      finder.clear();
      std::int64_t found_at = -1, period = 0;
      for (std::int64_t i = 0; i < 10'000 && found_at < 0; ++i) {
        const std::array<std::int64_t, 2> state = {row.state(i), 1};
        if (const auto found = finder.add(i, state)) {
          found_at = i;
          period = *found;
        }
      }
      CHECK(found_at == row.found_at);
      CHECK(period == row.period);
    }
  }
}

TEST_CASE("states of different length differ") {
  CycleFinder finder;
  const std::array<std::int64_t, 3> state = {0, 0, 0};
  CHECK_FALSE(finder.add(0, std::span(state).first(1)));
  CHECK_FALSE(finder.add(1, std::span(state).first(2)));
  CHECK_FALSE(finder.add(2, state));
  CHECK(finder.add(3, std::span(state).first(2)) == 2);
}

}  // namespace
}  // namespace spillway::engine
