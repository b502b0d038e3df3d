#include "sim/explain/contention.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/sim/engine/random_program.h"
#include "tests/sim/engine/toy.h"

namespace spillway {
namespace {

using engine::SlotId;
using engine::StepId;
using engine::testing::seconds;
using engine::testing::Toy;

/// Everything that hands over through a slot.
Target target_of(const engine::EngineProgram& program, SlotId slot) {
  Target target;
  for (const StepId step : ids(program.steps)) {
    if (const auto* start = std::get_if<engine::StartStep>(&program.steps[step]);
        start && start->slot == slot)
      target.starts.push_back(step);
    if (const auto* wait = std::get_if<engine::WaitStep>(&program.steps[step]);
        wait && wait->slot == slot)
      target.waits.push_back(step);
  }
  return target;
}

TEST_CASE("who shares is counted while the main stream waits, in every iteration") {
  // Both ways carry 6 B/s: a reload and an offload of 9 B take 3 s each instead of 2.25.
  Toy toy;
  const SlotId in = add_slot(toy.program), out = add_slot(toy.program);
  const auto reload = toy.reload(9), offload = toy.offload(9);
  add_loop(toy.program, 100, [&] {
    add_start(toy.program, offload, toy.down, out);  // 1
    add_start(toy.program, reload, toy.up, in);      // 2
    toy.run(toy.kernel(seconds(1)));                 // 3
    toy.wait(in);                                    // 4: 2 s
    toy.wait(out);                                   // 5
  });
  const auto sharers = find_sharers(toy.program, target_of(toy.program, in));
  REQUIRE(sharers.size() == 1);
  CHECK(sharers.begin()->first == toy.both);
  REQUIRE(sharers.begin()->second.size() == 1);
  CHECK(sharers.begin()->second[0].step == StepId(1));
  CHECK(sharers.begin()->second[0].time == seconds(200));
}

TEST_CASE("of several the longest comes first, whoever the loop runs") {
  Toy toy;
  const SlotId in = add_slot(toy.program), out = add_slot(toy.program);
  const auto offload = toy.offload(9);
  add_start(toy.program, toy.offload(30), toy.down, out);  // 0: in front of the loop
  add_loop(toy.program, 50, [&] {
    add_start(toy.program, offload, toy.down, out);  // 2
    add_start(toy.program, toy.reload(9), toy.up, in);
    toy.wait(in);
    toy.wait(out);
  });
  const auto sharers = find_sharers(toy.program, target_of(toy.program, in));
  const std::vector<Sharer>& both = sharers.at(toy.both);
  REQUIRE(both.size() == 2);
  CHECK(both[0].step == StepId(2));
  CHECK(both[1].step == StepId(0));
  CHECK(both[0].time == seconds(49 * 3));
  CHECK(both[1].time == seconds(3));
}

TEST_CASE("loops that are extended count as if each iteration had been simulated") {
  std::size_t shared = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    const engine::EngineProgram program = engine::testing::random_program(seed);
    for (std::size_t slot = 0; slot < program.slot_count; ++slot) {
      const Target target = target_of(program, SlotId(slot));
      if (target.waits.empty()) continue;
      const auto extended = find_sharers(program, target);
      const auto simulated = find_sharers(program, target, /*extend_loops=*/false);
      REQUIRE(extended.size() == simulated.size());
      for (const auto& [resource, sharers] : extended) {
        std::set<std::pair<StepId, SimTime>> a, b;
        for (const Sharer& sharer : sharers) a.emplace(sharer.step, sharer.time);
        for (const Sharer& sharer : simulated.at(resource)) b.emplace(sharer.step, sharer.time);
        CHECK(a == b);
        shared += sharers.size();
      }
    }
  }
  CHECK(shared > 100);
}

}  // namespace
}  // namespace spillway
