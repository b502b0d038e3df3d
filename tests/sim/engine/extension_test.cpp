// Extending a loop gives what simulating every iteration gives, to the picosecond.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/engine/engine.h"
#include "tests/sim/engine/random_program.h"
#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/timeline.h"
#include "tests/sim/engine/toy.h"

namespace spillway::engine {
namespace {

using testing::random_program;
using testing::seconds;
using testing::Timeline;
using testing::Toy;
using testing::unrolled;

constexpr std::uint64_t kPrograms = 1000;

std::int64_t scale_of(std::uint64_t seed) {
  constexpr std::int64_t kScales[] = {1, 1000, 1'000'000'000};
  return kScales[seed % 3];
}

void check_same(const EngineResult& a, const EngineResult& b) {
  CHECK(a.makespan == b.makespan);
  CHECK(a.main_end == b.main_end);
  CHECK(std::ranges::equal(a.steps, b.steps));
  CHECK(a.stalls == b.stalls);
  CHECK(std::ranges::equal(a.streams, b.streams));
  CHECK(std::ranges::equal(a.resources, b.resources));
}

TEST_CASE("a thousand random programs, extended and simulated") {
  std::int64_t extended_programs = 0, simulated = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program =
        random_program(seed, {.scale = scale_of(seed), .two_sided = seed % 2 == 0});
    Timeline extended_timeline, full_timeline;
    const EngineResult extended = run_to_end(program, {}, &extended_timeline);
    const EngineResult full = run_to_end(program, {.extend_loops = false}, &full_timeline);
    check_same(extended, full);
    CHECK(full_timeline.repeats == 0);
    CHECK(extended_timeline.happenings == full_timeline.happenings);
    extended_programs += extended_timeline.repeats > 0;
    simulated += extended.effort.iterations;
    all += full.effort.iterations;
  }
  CHECK(extended_programs > 400);  // or this test shows nothing
  CHECK(simulated < all / 5);
}

TEST_CASE("a loop is its body written out") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program =
        random_program(seed, {.scale = scale_of(seed), .two_sided = seed % 2 == 0});
    const EngineResult looped = run_to_end(program);
    const EngineResult flat = run_to_end(unrolled(program));
    CHECK(looped.makespan == flat.makespan);
    CHECK(looped.main_end == flat.main_end);
    CHECK(std::ranges::equal(looped.streams, flat.streams));
    CHECK(std::ranges::equal(looped.resources, flat.resources));
  }
}

TEST_CASE("the cost of a loop that repeats itself is that of its transient") {
  struct Row {
    std::string name;
    std::int64_t trips;
    void (*build)(Toy&, std::int64_t trips);
    std::int64_t simulated;  // iterations
  };
  const Row rows[] = {
      {"nothing in flight between iterations", 1'000'000,
       [](Toy& toy, std::int64_t trips) {
         add_loop(toy.program, trips, [&] { toy.run(toy.kernel(SimTime(3))); });
       },
       2},
      {"a copy across the border of the iterations", 100'000,
       [](Toy& toy, std::int64_t trips) {
         const SlotId slot = toy.start(toy.reload(8), toy.up);
         add_loop(toy.program, trips, [&] {
           add_start(toy.program, toy.reload(8), toy.up, slot);
           toy.run(toy.kernel(seconds(1)));
           toy.wait(slot, 1);
         });
       },
       2},
      {"a period of two iterations", 40'001,
       [](Toy& toy, std::int64_t trips) {
         const SlotId slot = toy.start(toy.kernel(seconds(1)), toy.up);
         toy.start(toy.kernel(seconds(4), 96), toy.down);
         add_loop(toy.program, trips, [&] {
           toy.wait(slot);
           add_start(toy.program, toy.kernel(seconds(4), 128), toy.up, slot);
           toy.run(toy.kernel(seconds(3)));
           toy.start(toy.kernel(seconds(2), 64), toy.down);
         });
       },
       7},
      {"a backlog that grows for ever has no period", 500,
       [](Toy& toy, std::int64_t trips) {
         add_loop(toy.program, trips, [&] {
           toy.start(toy.reload(8), toy.up);
           toy.run(toy.kernel(seconds(1)));
         });
       },
       500},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Toy toy;
    row.build(toy, row.trips);
    const EngineResult result = run_to_end(toy.program);
    CHECK(result.effort.iterations == row.simulated);
    CHECK(result.effort.iterations + result.effort.repeated_iterations == row.trips);
  }
}

TEST_CASE("a repeat is reported once, and what follows is later by it") {
  Toy toy;
  const TaskId kernel = toy.kernel(seconds(2));
  add_loop(toy.program, 10, [&] { toy.run(kernel); });
  toy.run(kernel);

  struct Heard : Listener {
    std::vector<Repeated> repeats;
    std::vector<SimTime> finished;
    void on_repeated(const Repeated& repeated) override { repeats.push_back(repeated); }
    void on_task_finished(const TaskFinished& e) override { finished.push_back(e.at); }
  } heard;
  run_to_end(toy.program, {}, &heard);

  REQUIRE(heard.repeats.size() == 1);
  CHECK(heard.repeats[0].loop == StepId(0));
  CHECK(heard.repeats[0].start == seconds(2));
  CHECK(heard.repeats[0].period == seconds(2));
  CHECK(heard.repeats[0].iterations == 1);
  CHECK(heard.repeats[0].times == 8);
  CHECK(heard.finished == std::vector<SimTime>{seconds(2), seconds(4), seconds(22)});
}

}  // namespace
}  // namespace spillway::engine
