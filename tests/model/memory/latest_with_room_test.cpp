#include "model/memory/latest_with_room.h"

#include <doctest/doctest.h>

#include <random>

namespace spillway {
namespace {

TEST_CASE("the latest first, then the one before it") {
  LatestWithRoom list;
  CHECK(!list.find(0, 0));
  for (const std::int32_t room : {5, 0, 3, 7, 0}) list.push(room);
  CHECK(list.find(5, 3) == 3u);
  CHECK(list.find(3, 3) == 2u);
  CHECK(list.find(2, 3) == 0u);
  CHECK(!list.find(0, 3));
  CHECK(!list.find(5, 8));
  CHECK(list.find(5, 0) == 4u);
  list.set(3, 2);
  CHECK(list.find(5, 3) == 2u);
}

TEST_CASE("the same as looking at each") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t n) { return random() % n; };
    std::vector<std::int32_t> rooms;
    LatestWithRoom list;
    for (int k = 0; k < 100; ++k) {
      const auto room = static_cast<std::int32_t>(below(8));
      if (rooms.empty() || below(3) == 0) {
        rooms.push_back(room);
        list.push(room);
      } else {
        const std::size_t changed = below(rooms.size());
        rooms[changed] = room;
        list.set(changed, room);
      }
      REQUIRE(list.size() == rooms.size());
      const std::size_t count = below(rooms.size() + 1);
      const auto wanted = static_cast<std::int32_t>(below(9));
      std::optional<std::size_t> expected;
      for (std::size_t i = 0; i < count; ++i)
        if (rooms[i] >= wanted) expected = i;
      REQUIRE(list.find(count, wanted) == expected);
    }
  }
}

}  // namespace
}  // namespace spillway
