#include "model/hlo/id_table.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace spillway::hlo {
namespace {

TEST_CASE("ids of every size are kept apart, and the first value stays") {
  IdTable<int> table;
  CHECK(table.find(0) == nullptr);
  CHECK(table.insert(0, 1));
  CHECK(table.insert(-1, 2));
  CHECK(table.insert(std::int64_t{1} << 40, 3));
  CHECK(!table.insert(-1, 4));
  CHECK(table.size() == 3);
  CHECK(*table.find(0) == 1);
  CHECK(*table.find(-1) == 2);
  CHECK(*table.find(std::int64_t{1} << 40) == 3);
  CHECK(table.find(1) == nullptr);
}

TEST_CASE("the same as a map, through growing and clearing") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    IdTable<int> table;
    for (int round = 0; round < 4; ++round) {
      std::map<std::int64_t, int> expected;
      const std::uint64_t ids = 1 + random() % 400;
      // As XLA numbers: the computation in the upper half, small numbers in the lower.
      const auto any_id = [&] {
        return static_cast<std::int64_t>((random() % 3) << 32 | random() % ids);
      };
      for (int k = 0; k < 300; ++k) {
        const std::int64_t id = any_id();
        REQUIRE(table.insert(id, k) == expected.emplace(id, k).second);
        const std::int64_t asked = any_id();
        const auto known = expected.find(asked);
        const int* const found = table.find(asked);
        REQUIRE((found != nullptr) == (known != expected.end()));
        if (found != nullptr) REQUIRE(*found == known->second);
      }
      REQUIRE(table.size() == expected.size());
      table.clear();
      for (const auto& [id, value] : expected) REQUIRE(table.find(id) == nullptr);
    }
  }
}

}  // namespace
}  // namespace spillway::hlo
