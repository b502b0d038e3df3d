#include "sim/explain/edit_steps.h"

#include <doctest/doctest.h>

#include "tests/sim/engine/random_program.h"
#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway {
namespace {

using engine::StepId;
using engine::testing::random_program;
using engine::testing::seconds;
using engine::testing::Toy;

TEST_CASE("without edits it is the same program") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const engine::EngineProgram program = random_program(seed);
    const EditedSteps edited = edit_steps(program, {});
    REQUIRE(edited.program.steps.size() == program.steps.size());
    for (const StepId step : ids(edited.original)) CHECK(edited.original[step] == step);
    CHECK(engine::run_to_end(edited.program).makespan == engine::run_to_end(program).makespan);
  }
}

TEST_CASE("a peeled loop runs its last iteration behind itself") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const engine::EngineProgram program = random_program(seed);
    for (const StepId step : ids(program.steps)) {
      if (!std::holds_alternative<engine::LoopStep>(program.steps[step])) continue;
      StepEdits edits;
      edits.peeled = step;
      CHECK(engine::run_to_end(edit_steps(program, edits).program).makespan ==
            engine::run_to_end(program).makespan);
    }
  }
}

TEST_CASE("steps move, and go into the iteration before") {
  Toy toy;
  const auto slot = add_slot(toy.program);
  const auto fetch = toy.reload(8);  // 2 s
  const StepId loop = add_loop(toy.program, 10, [&] {
    toy.run(toy.kernel(seconds(3)));              // 1
    add_start(toy.program, fetch, toy.up, slot);  // 2
    toy.wait(slot);                               // 3
    toy.run(toy.kernel(seconds(1)));              // 4
  });
  const StepId start(2), wait(3);
  const auto makespan = [&](const StepEdits& edits) {
    const EditedSteps edited = edit_steps(toy.program, edits);
    REQUIRE_FALSE(engine::find_fault(edited.program));
    return engine::run_to_end(edited.program).makespan;
  };
  CHECK(makespan({}) == seconds(60));
  StepEdits earlier;
  earlier.removed.insert(start);
  earlier.before[StepId(1)].push_back({.copy_of = start});
  CHECK(makespan(earlier) == seconds(40));
  StepEdits later;  // to the end of the body, still inside
  later.removed.insert(wait);
  later.after[StepId(4)].push_back({.copy_of = wait});
  CHECK(makespan(later) == seconds(50));
  StepEdits ahead;  // ten copies in all: one in front, none in the last iteration
  ahead.before[loop].push_back({.copy_of = start});
  ahead.removed.insert(start);
  ahead.after[wait].push_back({.copy_of = start, .not_in_last = true});
  ahead.peeled = loop;
  const EditedSteps edited = edit_steps(toy.program, ahead);
  const auto run = engine::run_to_end(edited.program);
  CHECK(run.makespan == seconds(40));
  std::int64_t copies = 0;
  for (const StepId step : ids(edited.original))
    if (edited.original[step] == start) copies += run.steps[step].count;
  CHECK(copies == 10);
  StepEdits behind;  // an offload that is waited for an iteration later
  behind.before[loop].push_back({.copy_of = start, .takes_no_time = true});
  behind.removed.insert(wait);
  behind.before[wait].push_back({.copy_of = wait, .back = 1});
  behind.after[loop].push_back({.copy_of = wait});
  CHECK(makespan(behind) == seconds(41));
}

}  // namespace
}  // namespace spillway
