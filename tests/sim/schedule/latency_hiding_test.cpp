#include "sim/schedule/latency_hiding.h"

#include <doctest/doctest.h>

#include "tests/sim/schedule/fixed_estimator.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::FixedEstimator;
using testing::toy_program;
using testing::toy_schedule;

Schedule hide(const Program& program, const LatencyHidingLimits& limits) {
  const MemoryAssignment given = assign_memory(program, toy_schedule(program));
  IdVector<ComputationId, ElementOrder> orders(program.computations.size());
  for (const ComputationId id : ids(program.computations)) {
    if (!given.schedule.reaches(id)) continue;
    std::vector<InstructionIndex> order;
    for (const InstructionIndex i : program[id].instructions()) order.push_back(i);
    orders[id] = with_elements(program[id], order);
  }
  return hide_latencies(program, given, orders, FixedEstimator(), limits);
}

/// "a b c": the order of the entry.
std::string order_of(const Program& program, const LatencyHidingLimits& limits) {
  const Schedule schedule = hide(program, limits);
  std::string text;
  for (const InstructionIndex i : schedule.order[program.entry])
    text += (text.empty() ? "" : " ") + std::string(program.entry_computation()[i].name);
  return text;
}

TEST_CASE("what runs between the start and the done of a copy") {
  struct Row {
    const char* name;
    const char* entry;
    LatencyHidingLimits limits;
    const char* order;
  };
  const Row rows[] = {
      {"everything that can",
       R"(
  %a = f32[64]{0} parameter(0)
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done = f32[64]{0:S(5)} copy-done(%start)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  %y = f32[64]{0} custom-call(%x), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%y, %done), custom_call_target="f"
)",
       {},
       "a start x y done out"},
      {"no more than hides it: the copy of x takes as long as five kernels",
       R"(
  %a = f32[64]{0} parameter(0)
  %x1 = f32[64]{0} custom-call(%a), custom_call_target="f"
  %x2 = f32[64]{0} custom-call(%x1), custom_call_target="f"
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%x2)
  %done = f32[64]{0:S(5)} copy-done(%start)
  %x3 = f32[64]{0} custom-call(%x2), custom_call_target="f"
  %x4 = f32[64]{0} custom-call(%x3), custom_call_target="f"
  %x5 = f32[64]{0} custom-call(%x4), custom_call_target="f"
  %x6 = f32[64]{0} custom-call(%x5), custom_call_target="f"
  %x7 = f32[64]{0} custom-call(%x6), custom_call_target="f"
  %x8 = f32[64]{0} custom-call(%x7), custom_call_target="f"
  %x9 = f32[64]{0} custom-call(%x8), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%x9, %done), custom_call_target="f"
)",
       {},
       "a x1 x2 start x3 x4 x5 x6 x7 x8 x9 done out"},
      {"two copies at once",
       R"(
  %a = f32[64]{0} parameter(0)
  %b = f32[64]{0} parameter(1)
  %start1 = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done1 = f32[64]{0:S(5)} copy-done(%start1)
  %start2 = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%b)
  %done2 = f32[64]{0:S(5)} copy-done(%start2)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%x, %done1, %done2), custom_call_target="f"
)",
       {},
       "a start1 b start2 x done1 done2 out"},
      {"or one after the other",
       R"(
  %a = f32[64]{0} parameter(0)
  %b = f32[64]{0} parameter(1)
  %start1 = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done1 = f32[64]{0:S(5)} copy-done(%start1)
  %start2 = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%b)
  %done2 = f32[64]{0:S(5)} copy-done(%start2)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%x, %done1, %done2), custom_call_target="f"
)",
       {.async_computes = 1},
       "a start1 done1 b start2 x done2 out"},
      {"of two that free memory, the one that frees more last, where memory is short",
       R"(
  %a = f32[64]{0} parameter(0)
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done = f32[64]{0:S(5)} copy-done(%start)
  %big = f32[640]{0} custom-call(%a), custom_call_target="f"
  %small = f32[64]{0} custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%big, %small, %done), custom_call_target="f"
)",
       {.memory = Bytes(1024)},
       "a start small done big out"},
      {"and otherwise the one that was last",
       R"(
  %a = f32[64]{0} parameter(0)
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done = f32[64]{0:S(5)} copy-done(%start)
  %big = f32[640]{0} custom-call(%a), custom_call_target="f"
  %small = f32[64]{0} custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%big, %small, %done), custom_call_target="f"
)",
       {.memory = Bytes(1 << 20)},
       "a start big small done out"},
      {"elements of a tuple are nodes too: each takes a cycle",
       R"(
  %a = f32[64]{0} parameter(0)
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done = f32[64]{0:S(5)} copy-done(%start)
  %pair = (f32[64]{0}, f32[64]{0}) custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%pair#0, %pair#1, %done), custom_call_target="f"
)",
       {},
       "a start pair done out"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(order_of(testing::read_entry(row.entry), row.limits) == row.order);
  }
}

TEST_CASE("what makes much out of nothing runs as late as it can") {
  struct Row {
    const char* shape;
    const char* order;
  };
  const Row rows[] = {{"f32[262144]{0}", "a start x y done zeros out"},   // 1 MiB
                      {"f32[262143]{0}", "a start zeros x y done out"}};  // 4 B less
  for (const Row& row : rows) {
    CAPTURE(row.shape);
    const std::string shape = row.shape;
    const Program program = toy_program("%fill {\n  %zero = f32[] constant(0)\n  ROOT %all = " +
                                        shape + " broadcast(%zero), dimensions={}\n}\n\n" + R"(
ENTRY %main {
  %a = f32[64]{0} parameter(0)
  %zeros = )" + shape + R"( fusion(), kind=kLoop, calls=%fill
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  %y = f32[64]{0} custom-call(%x), custom_call_target="f"
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %done = f32[64]{0:S(5)} copy-done(%start)
  ROOT %out = f32[64]{0} custom-call(%zeros, %y, %done), custom_call_target="f"
}
)");
    CHECK(order_of(program, {}) == row.order);
  }
}

/// A loop that gathers in its body, and a gather beside it.
Program loop_beside_gather() {
  return toy_program(R"(
%gather {
  %p = f32[8]{0} parameter(0)
  ROOT %g = f32[64]{0} all-gather(%p), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
}

%body {
  %state = (s32[], f32[8]{0}) parameter(0)
  %body_start = ((f32[8]{0}), f32[64]{0}) async-start(%state#1), calls=%gather
  %body_done = f32[64]{0} async-done(%body_start)
  %next = f32[8]{0} custom-call(%body_done), custom_call_target="f"
  ROOT %tuple = (s32[], f32[8]{0}) tuple(%state#0, %next)
}

%condition {
  %again = (s32[], f32[8]{0}) parameter(0)
  %limit = s32[] constant(4)
  ROOT %less = pred[] compare(%again#0, %limit), direction=LT
}

%gather2 {
  %q = f32[8]{0} parameter(0)
  ROOT %h = f32[64]{0} all-gather(%q), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = ((f32[8]{0}), f32[64]{0}) async-start(%a), calls=%gather2
  %done = f32[64]{0} async-done(%start)
  %init = (s32[], f32[8]{0}) tuple(%zero, %a)
  %loop = (s32[], f32[8]{0}) while(%init), condition=%condition, body=%body
  ROOT %out = f32[64]{0} custom-call(%done, %loop#1), custom_call_target="f"
}
)");
}

TEST_CASE("a loop takes the resources of its body") {
  const Program program = loop_beside_gather();
  CHECK(order_of(program, {}) == "a zero init loop start done out");
  CHECK(order_of(program, {.collectives = 2}) == "a start zero init loop done out");
}

}  // namespace
}  // namespace spillway
