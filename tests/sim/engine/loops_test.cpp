// Loops and handles that outlive an iteration.
#include <doctest/doctest.h>

#include <string>

#include "sim/engine/engine.h"
#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway::engine {
namespace {

using testing::seconds;
using testing::Toy;

/// Each row is run with and without extension.
TEST_CASE("loops and pipelines") {
  struct Row {
    std::string name;
    void (*build)(Toy&);
    SimTime makespan;
    SimTime stalled;  // all waits together
  };
  const Row rows[] = {
      {"no trips",
       [](Toy& toy) { add_loop(toy.program, 0, [&] { toy.run(toy.kernel(seconds(1))); }); },
       seconds(0), seconds(0)},
      {"no body", [](Toy& toy) { add_loop(toy.program, 1'000'000'000, [] {}); }, seconds(0),
       seconds(0)},
      {"126 times one kernel",
       [](Toy& toy) { add_loop(toy.program, 126, [&] { toy.run(toy.kernel(seconds(2))); }); },
       seconds(252), seconds(0)},
      {"loops in loops, and steps around them: 1 + 5 × (1 + 3 × 2 + 1) + 1",
       [](Toy& toy) {
         const TaskId one = toy.kernel(seconds(1)), two = toy.kernel(seconds(2));
         toy.run(one);
         add_loop(toy.program, 5, [&] {
           toy.run(one);
           add_loop(toy.program, 3, [&] { toy.run(two); });
           toy.run(one);
         });
         toy.run(one);
       },
       seconds(42), seconds(0)},
      {"loops that end together",
       [](Toy& toy) {
         add_loop(toy.program, 4, [&] {
           add_loop(toy.program, 3,
                    [&] { add_loop(toy.program, 2, [&] { toy.run(toy.kernel(seconds(1))); }); });
         });
       },
       seconds(24), seconds(0)},
      {"a copy hidden in its iteration",
       [](Toy& toy) {
         const SlotId slot = add_slot(toy.program);
         add_loop(toy.program, 10, [&] {
           add_start(toy.program, toy.offload(12), toy.down, slot);
           toy.run(toy.kernel(seconds(5)));
           toy.wait(slot);
         });
       },
       seconds(50), seconds(0)},
      {"a copy exposed in its iteration",
       [](Toy& toy) {
         const SlotId slot = add_slot(toy.program);
         add_loop(toy.program, 10, [&] {
           add_start(toy.program, toy.offload(12), toy.down, slot);
           toy.wait(slot);
           toy.run(toy.kernel(seconds(5)));
         });
       },
       seconds(80), seconds(30)},
      {"done one iteration later: hidden, but for the first and the last",
       // Each wait asks for the instance before the one just started; the last is waited for behind
       // the loop.
       [](Toy& toy) {
         const SlotId slot = toy.start(toy.offload(12), toy.down);
         add_loop(toy.program, 10, [&] {
           add_start(toy.program, toy.offload(12), toy.down, slot);
           toy.wait(slot, 1);
           toy.run(toy.kernel(seconds(5)));
         });
         toy.wait(slot);
       },
       seconds(53), seconds(3)},
      {"fetched one iteration ahead: started in front, waited for at the top",
       [](Toy& toy) {
         const SlotId slot = toy.start(toy.reload(12), toy.up);
         add_loop(toy.program, 10, [&] {
           toy.wait(slot);
           add_start(toy.program, toy.reload(12), toy.up, slot);
           toy.run(toy.kernel(seconds(5)));
         });
         toy.wait(slot);
       },
       seconds(53), seconds(3)},
      {"fetched one iteration ahead by a link that is too slow: the copies are the step",
       [](Toy& toy) {
         const SlotId slot = toy.start(toy.reload(24), toy.up);
         add_loop(toy.program, 10, [&] {
           toy.wait(slot);
           add_start(toy.program, toy.reload(24), toy.up, slot);
           toy.run(toy.kernel(seconds(5)));
         });
         toy.wait(slot);
       },
       seconds(66), seconds(16)},
      {"started in front, waited for in the first iteration and in all others",
       [](Toy& toy) {
         const SlotId slot = toy.start(toy.reload(12), toy.up);
         add_loop(toy.program, 10, [&] {
           toy.wait(slot);
           toy.run(toy.kernel(seconds(5)));
         });
       },
       seconds(53), seconds(3)},
      {"started in every iteration, waited for behind the loop: the latest, FIFO behind all others",
       [](Toy& toy) {
         const SlotId slot = add_slot(toy.program);
         add_loop(toy.program, 10, [&] {
           add_start(toy.program, toy.offload(24), toy.down, slot);
           toy.run(toy.kernel(seconds(5)));
         });
         toy.wait(slot);
       },
       seconds(60), seconds(10)},
      {"waited for from far behind the loop: the copies end at 6, 12, …, the one asked for at 36",
       [](Toy& toy) {
         const SlotId slot = add_slot(toy.program);
         add_loop(toy.program, 10, [&] {
           add_start(toy.program, toy.offload(24), toy.down, slot);
           toy.run(toy.kernel(seconds(1)));
         });
         toy.wait(slot, 4);
       },
       seconds(60), seconds(26)},
      {"asked for so far back that it ended in an iteration that was not simulated",
       [](Toy& toy) {
         const SlotId slot = add_slot(toy.program);
         add_loop(toy.program, 1000, [&] {
           add_start(toy.program, toy.offload(4), toy.down, slot);
           toy.run(toy.kernel(seconds(2)));
         });
         toy.wait(slot, 999);
       },
       seconds(2000), seconds(0)},
      {"a handle carried through an inner loop into the next outer iteration",
       [](Toy& toy) {
         const SlotId slot = toy.start(toy.reload(40), toy.up);
         add_loop(toy.program, 5, [&] {
           toy.wait(slot);
           add_start(toy.program, toy.reload(40), toy.up, slot);
           add_loop(toy.program, 4, [&] { toy.run(toy.kernel(seconds(3))); });
         });
       },
       seconds(70), seconds(10)},
      {"a slot whose instances run on two streams: the wait asks by order of start",
       [](Toy& toy) {
         const SlotId slot = add_slot(toy.program);
         add_start(toy.program, toy.offload(40), toy.down, slot);
         add_start(toy.program, toy.kernel(seconds(1)), toy.up, slot);
         toy.wait(slot);
         toy.run(toy.kernel(seconds(2)));
         toy.wait(slot, 1);
       },
       seconds(10), seconds(8)},
  };
  for (const Row& row : rows)
    for (const bool extend : {true, false}) {
      if (!extend && row.name == "no body") continue;
      CAPTURE(row.name);
      CAPTURE(extend);
      Toy toy;
      row.build(toy);
      const EngineResult result = run_to_end(toy.program, {.extend_loops = extend});
      SimTime stalled;
      for (const StepStats& step : result.steps) stalled += step.stalled;
      CHECK(result.makespan.value() == row.makespan.value());
      CHECK(stalled.value() == row.stalled.value());
    }
}

TEST_CASE("a loop keeps its own account, inside other loops too") {
  Toy toy;
  StepId inner;
  const StepId outer = add_loop(toy.program, 50, [&] {
    toy.run(toy.kernel(seconds(1)));
    inner = add_loop(toy.program, 20, [&] { toy.run(toy.kernel(seconds(2))); });
  });
  const EngineResult result = run_to_end(toy.program);
  CHECK(result.steps[outer].count == 50);
  CHECK(result.steps[outer].busy == seconds(50 * 41));
  CHECK(result.steps[inner].count == 1000);
  CHECK(result.steps[inner].busy == seconds(2000));
  CHECK(result.streams[kMainStream].tasks == 1050);
}

}  // namespace
}  // namespace spillway::engine
