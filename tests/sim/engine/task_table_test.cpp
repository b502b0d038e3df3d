#include "sim/engine/task_table.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/sim/engine/random_program.h"
#include "tests/sim/engine/toy.h"

namespace spillway::engine {
namespace {

using testing::milliseconds;
using testing::seconds;

TEST_CASE("a task alone: how long, and how much of a resource") {
  struct Row {
    std::string name;
    SimTime duration;
    std::int64_t amount, capacity;
    SimTime alone;
    std::int64_t use;  // of the resource, in 2^-48
  };
  constexpr std::int64_t kAll = kWhole.value();
  const Row rows[] = {
      {"bound by the resource", seconds(1), 64, 32, seconds(2), kAll},
      {"bound by itself", seconds(8), 64, 32, seconds(8), kAll / 4},
      {"both", seconds(2), 64, 32, seconds(2), kAll},
      {"no demand", seconds(2), 0, 32, seconds(2), 0},
      {"rounds up to a picosecond: 10/3 s", seconds(0), 10, 3, SimTime(3'333'333'333'334),
       kAll - 57},
      {"a third, rounded down", seconds(1), 1, 3, seconds(1), kAll / 3},
      {"one byte over HBM for 20 hours, too little to count", kLongestTask, 1, 1'000'000'000'000,
       kLongestTask, 0},
      {"10 TB over 8 TB/s", milliseconds(1), 10'000'000'000'000, 8'000'000'000'000,
       milliseconds(1250), kAll},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    EngineProgram program;
    const ResourceId resource = add_resource(program, row.capacity);
    const TaskId task = add_task(program, {.duration = row.duration}, {{resource, row.amount}});
    const TaskTable table(program);
    CHECK(table[task].alone.value() == row.alone.value());
    CHECK(table.loads(task).size() == (row.use > 0 ? 1 : 0));
    if (row.use > 0) CHECK(table.loads(task)[0].use.value() == row.use);
  }
}

TEST_CASE("one side of a two-sided resource takes no time by itself, but uses its capacity") {
  EngineProgram program;
  const ResourceId link = add_resource(program, 8);
  const ResourceId both = add_two_sided(program, 6);
  const TaskId up = add_task(program, {}, {{link, 16}, {both, 16, Side::kOne}});
  const TaskId round = add_task(program, {}, {{link, 16}, {both, 16, Side::kBoth}});
  const TaskId alone = add_task(program, {}, {{both, 6 * kFastestSide, Side::kOther}});
  const TaskTable table(program);
  CHECK(table[up].alone == seconds(2));
  CHECK(table.loads(up)[1].use == Fraction(kWhole.value() / 3 * 4 + 1));
  CHECK(table[round].alone == SimTime(2'666'666'666'667));
  CHECK(table[alone].alone == seconds(1));  // some end there must be
}

TEST_CASE("uses are never above the truth, and two units of 2^-48 below it at most") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    testing::Dice dice(seed);
    EngineProgram program;
    const std::int64_t capacity = std::int64_t{1} << dice.roll(0, 44);
    const ResourceId resource = add_resource(program, capacity + dice.roll(0, capacity));
    const std::int64_t amount = std::int64_t{1} << dice.roll(0, 12);
    const TaskId task =
        add_task(program, {.duration = SimTime(dice.roll(0, std::int64_t{1} << 55))},
                 {{resource, amount + dice.roll(0, amount)}});
    const TaskTable table(program);
    const Wide available =
        wide(table[task].alone.value()) * wide(program.resources[resource].capacity);
    const Wide used = wide(program.demands[0].amount) * 1'000'000'000'000u;
    const Wide use = table.loads(task).empty() ? 0 : wide(table.loads(task)[0].use.value());
    // use / 2^48 <= used / available < (use + 2) / 2^48, in 128 bits
    const int shift = available >> 78 ? 24 : 0;
    CHECK((available >> shift) * use <= ((used >> shift) + 1) << kFractionBits);
    CHECK((available >> shift) * (use + 2) >= (used >> shift) << kFractionBits);
  }
}

TEST_CASE("work and time are each other's inverse, to the nearest picosecond") {
  const Fraction third(kWhole.value() / 3);
  CHECK(work_done(seconds(3), third) == seconds(1));
  CHECK(time_needed(seconds(1), third) == seconds(3));
  CHECK(work_done(SimTime(1), third) == SimTime(0));
  CHECK(work_done(SimTime(2), third) == SimTime(1));
  CHECK(time_needed(SimTime(1), third) == SimTime(3));
  CHECK(time_needed(kLongestTask, kWhole) == kLongestTask);
}

}  // namespace
}  // namespace spillway::engine
