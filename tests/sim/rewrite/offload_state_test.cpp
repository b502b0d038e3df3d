// State of the toy training step moved between HBM and pinned host memory, and back.
#include "sim/rewrite/offload_state.h"

#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "model/memory/memory_report.h"
#include "model/program/host_transfer.h"
#include "sim/schedule/reorder.h"
#include "tests/model/hardware/toy_profile.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/model/state/toy_training.h"
#include "tests/sim/rewrite/check_sound.h"
#include "tests/sim/rewrite/run_toy.h"

namespace spillway {
namespace {

using testing::ToyTraining;

constexpr StateClass kParameters = StateClass::kParameters, kOptimizer = StateClass::kOptimizer;
constexpr Placement kDevice = Placement::kDevice, kHost = Placement::kPinnedHost;
constexpr int kWidth = 65536;
constexpr Bytes kRow(4 * kWidth), kStack = 4 * kRow;
/// p and h, or one moment of each.
constexpr Bytes kOnce = kStack + kRow;

MemoryAssignment memory_of(const Program& program) {
  return assign_memory(program, testing::toy_schedule(program));
}

/// A sound program, in the opinion of those that did not make it.
void check_sound(const Program& program) {
  testing::check_sound(program);
  CHECK(testing::find_overlap(program, memory_of(program)) == "");
}

/// Moved, and what was changed put into XLA's order.
Program move(const Program& program, const std::vector<StateChange>& changes) {
  const TrainingState state = find_training_state(program);
  const Program moved = move_state(program, memory_of(program), state, changes);
  check_sound(moved);
  CHECK(testing::run_toy_arguments(moved) == testing::run_toy_arguments(program));
  const HardwareProfile profile =
      parse_profile(std::string(testing::kToyProfile), "toy.yaml").value();
  const Program ordered = reorder_changed(moved, program, profile);
  check_sound(ordered);
  CHECK(testing::run_toy_arguments(ordered) == testing::run_toy_arguments(program));
  return ordered;
}

struct Wanted {
  const char* name;
  std::vector<StateChange> changes;
  Bytes argument;                        ///< on the host
  Bytes gradients;                       ///< in host memory, in allocations of their own or not
  Bytes device_to_host, host_to_device;  ///< of a step
};

/// Optimizer state crosses once each way. Parameters come whole for the update and, but for h, in
/// slices in both loops; the stack of p's gradients goes there and comes back.
const Wanted kWanted[] = {
    {"optimizer", {{kOptimizer, kHost}}, 2 * kOnce, Bytes(0), 2 * kOnce, 2 * kOnce},
    {"params", {{kParameters, kHost}}, kOnce, kStack, kOnce + kStack, kOnce + 3 * kStack},
    {"both",
     {{kOptimizer, kHost}, {kParameters, kHost}},
     3 * kOnce,
     kStack,
     3 * kOnce + kStack,
     3 * kOnce + 3 * kStack},
};

void check_on_host(const Program& program, const Wanted& wanted) {
  const MemoryTotals totals = sum_totals(memory_of(program));
  CHECK(totals.host_argument == wanted.argument);
  CHECK(totals.host_output == wanted.argument);
  CHECK(totals.host_alias == wanted.argument);
  CHECK(totals.host_temp <= wanted.gradients);
  const HostTraffic traffic = sum_traffic(program);
  CHECK(traffic.device_to_host == wanted.device_to_host);
  CHECK(traffic.host_to_device == wanted.host_to_device);
  const TrainingState state = find_training_state(program);
  for (const StateChange& change : wanted.changes) CHECK(placement_of(state, change.kind) == kHost);
  for (const InstructionId id : memory_of(program).schedule.order)
    CHECK_MESSAGE(!is_host_compute(program, id), program[id].name);
}

TEST_CASE("there and back again") {
  for (const bool asynchronous : {false, true})
    for (const bool named : {false, true})
      for (const Wanted& wanted : kWanted) {
        CAPTURE(asynchronous);
        CAPTURE(named);
        CAPTURE(wanted.name);
        const Program start =
            ToyTraining{.named = named, .asynchronous = asynchronous, .width = kWidth}.program();
        const MemoryTotals before = sum_totals(memory_of(start));
        CHECK(placement_of(find_training_state(start), kOptimizer) == kDevice);
        const Program there = move(start, wanted.changes);
        check_on_host(there, wanted);
        CHECK(sum_totals(memory_of(there)).argument == before.argument - wanted.argument);
        std::vector<StateChange> home = wanted.changes;
        for (StateChange& change : home) change.placement = kDevice;
        const Program back = move(there, home);
        const MemoryTotals after = sum_totals(memory_of(back));
        CHECK(host_bytes(after) == Bytes(0));
        CHECK(sum_traffic(back).device_to_host + sum_traffic(back).host_to_device == Bytes(0));
        CHECK(after.argument == before.argument);
        CHECK(after.alias == before.alias);
        // An async pair of its own for each slice is what may be left: tables and a slice.
        const Bytes pairs = 3 * (3 * Bytes(256) + kRow);
        CHECK(after.total_device <= before.total_device + pairs);
        CHECK(before.total_device <= after.total_device + pairs);
      }
}

TEST_CASE("what already lies there stays, and nothing is copied") {
  const Program start = ToyTraining{}.program();
  const TrainingState state = find_training_state(start);
  const Program same = move_state(start, memory_of(start), state, {{kOptimizer, kDevice}});
  for (const ComputationId id : ids(start.computations))
    CHECK(same.computations[id] == start.computations[id]);
}

TEST_CASE("a parameter that a loop reads whole is fetched once, whole") {
  const Program start = ToyTraining{.reads_whole = true, .width = kWidth}.program();
  const TrainingState state = find_training_state(start);
  CHECK(why_state_not_movable(start, memory_of(start), state, kParameters) ==
        "no loop reads parameters layer by layer (scan_layers): where XLA would fetch those of "
        "unrolled layers again is not known here");
  CHECK(why_state_not_movable(start, memory_of(start), state, kOptimizer) == "");
}

TEST_CASE("what cannot be moved says why") {
  struct Row {
    ToyTraining toy;
    const char* why;
  };
  const Row rows[] = {
      {{.donated = false},
       "no argument of the step is donated (donate_argnums), so that nothing says which result is "
       "the new state of which"},
      {{.unused_loop = true},
       "no loop reads parameters layer by layer (scan_layers): where XLA would fetch those of "
       "unrolled layers again is not known here"},
      {{.layers_first = false},
       "the layers of state.params['p'] are not its outermost dimension: how XLA moves such slices "
       "is not known here"},
  };
  for (const Row& row : rows) {
    const Program program = row.toy.program();
    const TrainingState state = find_training_state(program);
    CHECK(why_state_not_movable(program, memory_of(program), state, kParameters) == row.why);
    const Program same = move_state(program, memory_of(program), state, {{kParameters, kHost}});
    for (const ComputationId id : ids(program.computations))
      CHECK(same.computations[id] == program.computations[id]);
  }
}

TEST_CASE("some here and some there is no choice") {
  std::string text = ToyTraining{}.text();
  const std::string moment = "%mh = f32[64]{0} parameter";
  text.replace(text.find(moment), moment.size(), "%mh = f32[64]{0:S(5)} parameter");
  const Program program = testing::toy_program(
      text, ", input_output_alias={ {3}: (2, {}, may-alias), {4}: (3, {}, may-alias) }");
  const TrainingState state = find_training_state(program);
  CHECK(placement_of(state, kOptimizer) == std::nullopt);
  CHECK(why_state_not_movable(program, memory_of(program), state, kOptimizer) ==
        "some of it lies in HBM and some in pinned host memory");
}

}  // namespace
}  // namespace spillway
