#include "sim/schedule/memory_fences.h"

#include <doctest/doctest.h>

#include "model/program/control_predecessors.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// Three windows of copies to the host; `held` is read in the first.
constexpr const char* kThreeWindows = R"(
%gather (g: f32[64]) -> f32[128] {
  %g = f32[64]{0} parameter(0)
  ROOT %gathered = f32[128]{0} all-gather(%g), dimensions={0}, replica_groups={{0,1}}
}
ENTRY %main {
  %a = f32[64]{0} parameter(0)
  %held = f32[256]{0} custom-call(%a), custom_call_target="f"
  %small = f32[2]{0} custom-call(%a), custom_call_target="f"
  %start.0 = ((f32[64]{0}), f32[128]{0}, u32[]) async-start(%a), calls=%gather
  %reader = f32[64]{0} custom-call(%held), custom_call_target="f"
  %other = f32[64]{0} custom-call(%held, %small), custom_call_target="f"
  %done.0 = f32[128]{0} async-done(%start.0)
  %start.1 = ((f32[64]{0}), f32[128]{0}, u32[]) async-start(%a), calls=%gather
  %done.1 = f32[128]{0} async-done(%start.1)
  %start.2 = ((f32[64]{0}), f32[128]{0}, u32[]) async-start(%other), calls=%gather
  %done.2 = f32[128]{0} async-done(%start.2)
  ROOT %out = f32[64]{0} custom-call(%reader, %done.0, %done.1, %done.2), custom_call_target="f"
}
)";

/// "reader < start.1, other < start.1"
std::string describe(const Program& program, const std::vector<Precedence>& fences) {
  std::string text;
  const Computation& entry = program.entry_computation();
  for (const Precedence& fence : fences)
    text += (text.empty() ? "" : ", ") + std::string(entry[fence.first].name) + " < " +
            std::string(entry[fence.then].name);
  return text;
}

TEST_CASE("every reader of a buffer comes before the start that many windows behind the last") {
  const Program program = testing::toy_program(kThreeWindows);
  const MemoryAssignment given = assign_memory(program, testing::toy_schedule(program));
  struct Row {
    const char* name;
    std::int64_t threshold;
    std::int32_t slack;
    const char* expected;
  };
  const Row rows[] = {
      // The last reader runs in window 0, whose start is behind it already.
      {"no slack: the next start", 1024, 0, "reader < start.1, other < start.1"},
      {"one window", 1024, 1, "reader < start.1, other < start.1"},
      {"two windows; what start.2 reads comes before it anyway", 1024, 2, "reader < start.2"},
      {"more than there are", 1024, 3, ""},
      {"one byte too small", 1025, 1, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto fences = find_memory_fences(
        program, given, {.threshold = Bytes(row.threshold), .slack_windows = row.slack});
    CHECK(describe(program, fences[program.entry]) == row.expected);
  }
}

TEST_CASE("fences become control predecessors, beside those that are there") {
  const Program program = testing::toy_program(kThreeWindows);
  const MemoryAssignment given = assign_memory(program, testing::toy_schedule(program));
  const auto fences = find_memory_fences(program, given, {.threshold = Bytes(1024)});
  const auto predecessors = [](const Program& fenced, std::string_view name) {
    std::string text;
    const Computation& entry = fenced.entry_computation();
    for (const InstructionIndex i :
         ControlPredecessors(entry).of(testing::find_instruction(fenced, name).instruction))
      text += std::string(entry[i].name) + " ";
    return text;
  };
  const Program once = with_control_dependencies(program, fences);
  CHECK(predecessors(once, "start.1") == "reader other ");
  const auto more =
      find_memory_fences(program, given, {.threshold = Bytes(1024), .slack_windows = 2});
  const Program twice = with_control_dependencies(with_control_dependencies(once, more), more);
  CHECK(predecessors(twice, "start.1") == "reader other ");
  CHECK(predecessors(twice, "start.2") == "reader reader ");
}

TEST_CASE("values of the flag") {
  const Bytes limit(100'000);
  CHECK(!fencing_threshold(-1, limit));
  CHECK(*fencing_threshold(0, limit) == Bytes(1'000));
  CHECK(*fencing_threshold(50, limit) == Bytes(50));
  CHECK(*fencing_threshold(200'000, limit) == limit);
}

}  // namespace
}  // namespace spillway
