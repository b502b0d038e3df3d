#include "sim/engine/fifo.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>

#include "tests/sim/engine/random_program.h"

namespace spillway::engine {
namespace {

TEST_CASE("a queue that is never empty forgets what has left it") {
  Fifo<int> queue;
  std::deque<int> expected;
  testing::Dice dice(1);
  for (int i = 0; i < 10'000; ++i) {
    if (expected.size() < 2 || dice.chance(50)) {
      queue.push(i);
      expected.push_back(i);
    } else {
      CHECK(queue.pop() == expected.front());
      expected.pop_front();
    }
    if (i % 100 == 0) CHECK(std::ranges::equal(queue, expected));
    CHECK(queue.size() == expected.size());
    CHECK(queue.empty() == expected.empty());
  }
}

}  // namespace
}  // namespace spillway::engine
