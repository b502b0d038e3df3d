#include "model/memory/flat_schedule.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;
using testing::toy_schedule;

std::string order_of(const Program& program, const FlatSchedule& flat) {
  std::string text;
  for (const InstructionId id : flat.order)
    text += (text.empty() ? "" : " ") + std::string(program[id].name);
  return text;
}

constexpr const char* kLoop = R"(
%body (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  %x = s32[] add(%p, %p)
  ROOT %next = s32[] add(%x, %p)
}
%condition (q: s32[]) -> pred[] {
  %q = s32[] parameter(0)
  ROOT %less = pred[] compare(%q, %q), direction=LT
}
ENTRY %main (a: s32[]) -> s32[] {
  %a = s32[] parameter(0)
  %loop = s32[] while(%a), condition=%condition, body=%body
  ROOT %b = s32[] negate(%loop)
}
)";

TEST_CASE("what a caller runs stands in front of it") {
  struct Row {
    const char* name;
    const char* text;
    const char* order;
  };
  const Row rows[] = {
      {"a loop: condition, then body", kLoop, "a q less p x next loop b"},
      {"a call", R"(
%twice (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  ROOT %x = s32[] add(%p, %p)
}
ENTRY %main (a: s32[]) -> s32[] {
  %a = s32[] parameter(0)
  ROOT %run = s32[] call(%a), to_apply=%twice
}
)",
       "a p x run"},
      {"a conditional: its branches in order", R"(
%yes (p: s32[]) -> s32[] {
  ROOT %p = s32[] parameter(0)
}
%no (q: s32[]) -> s32[] {
  ROOT %q = s32[] parameter(0)
}
ENTRY %main (a: pred[], b: s32[]) -> s32[] {
  %a = pred[] parameter(0)
  %b = s32[] parameter(1)
  ROOT %choose = s32[] conditional(%a, %b, %b), true_computation=%yes, false_computation=%no
}
)",
       "a b p q choose"},
      {"what an async start wraps; fusions and reducers are not entered", R"(
%sum (l: s32[], r: s32[]) -> s32[] {
  %l = s32[] parameter(0)
  %r = s32[] parameter(1)
  ROOT %add = s32[] add(%l, %r)
}
%fused (f: s32[4]) -> s32[] {
  %f = s32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  ROOT %reduce = s32[] reduce(%f, %zero), dimensions={0}, to_apply=%sum
}
%wrapped (p: s32[4]) -> s32[] {
  %p = s32[4]{0} parameter(0)
  ROOT %inner = s32[] fusion(%p), kind=kLoop, calls=%fused
}
ENTRY %main (a: s32[4]) -> s32[] {
  %a = s32[4]{0} parameter(0)
  %start = ((s32[4]{0}), s32[], u32[]) async-start(%a), calls=%wrapped
  ROOT %done = s32[] async-done(%start)
}
)",
       "a p inner start done"},
      {"what two instructions call stands where it is first reached", R"(
%twice (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  ROOT %x = s32[] add(%p, %p)
}
ENTRY %main (a: s32[]) -> s32[] {
  %a = s32[] parameter(0)
  %run = s32[] call(%a), to_apply=%twice
  ROOT %again = s32[] call(%run), to_apply=%twice
}
)",
       "a p x run again"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = toy_program(row.text);
    CHECK(order_of(program, flatten(program, toy_schedule(program))) == row.order);
  }
}

TEST_CASE("positions, spans and callers point into the order") {
  const Program program = toy_program(kLoop);
  const FlatSchedule flat = flatten(program, toy_schedule(program));
  const InstructionId loop = find_instruction(program, "loop");
  const ComputationId condition = find_instruction(program, "q").computation;
  const ComputationId body = find_instruction(program, "p").computation;
  CHECK(flat.end() == LogicalTime(8));
  for (std::size_t k = 0; k < flat.order.size(); ++k)
    CHECK(flat.position[flat.order[k].computation][flat.order[k].instruction.index] ==
          LogicalTime(static_cast<int>(k)));
  CHECK(flat.span[condition].start == LogicalTime(1));
  CHECK(flat.span[condition].end == LogicalTime(3));
  CHECK(flat.span[body].start == LogicalTime(3));
  CHECK(flat.span[body].end == LogicalTime(6));
  CHECK(flat.span[program.entry].end == LogicalTime(8));
  CHECK(flat.caller[condition] == loop);
  CHECK(flat.caller[body] == loop);
  CHECK(!flat.caller[program.entry]);
}

TEST_CASE("a schedule of its own overrides the text") {
  const Program program = toy_program(R"(
ENTRY %main (a: s32[]) -> s32[] {
  %a = s32[] parameter(0)
  %x = s32[] negate(%a)
  %y = s32[] negate(%a)
  ROOT %z = s32[] add(%x, %y)
}
)");
  Schedule schedule = toy_schedule(program);
  for (const std::size_t k : {0, 2, 1, 3})
    schedule.order[program.entry].push_back(InstructionIndex(k));
  CHECK(order_of(program, flatten(program, schedule)) == "a y x z");
}

TEST_CASE("what an async start wraps, at any depth, knows where it is done") {
  const Program program = toy_program(R"(
%leaf (r: s32[]) -> s32[] {
  ROOT %r = s32[] parameter(0)
}
%wrapped (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  ROOT %run = s32[] call(%p), to_apply=%leaf
}
%lost (q: s32[]) -> s32[] {
  ROOT %q = s32[] parameter(0)
}
ENTRY %main (a: s32[]) -> s32[] {
  %a = s32[] parameter(0)
  %start = ((s32[]), s32[], u32[]) async-start(%a), calls=%wrapped
  %update = ((s32[]), s32[], u32[]) async-update(%start)
  %x = s32[] negate(%a)
  %done = s32[] async-done(%update)
  %start2 = ((s32[]), s32[], u32[]) async-start(%a), calls=%lost
  ROOT %end = s32[] negate(%x)
}
)");
  const FlatSchedule flat = flatten(program, toy_schedule(program));
  const LogicalTime done =
      flat.position[program.entry][find_instruction(program, "done").instruction.index];
  CHECK(done == LogicalTime(7));
  CHECK(flat.async_done[find_instruction(program, "p").computation] == done);
  CHECK(flat.async_done[find_instruction(program, "r").computation] == done);
  CHECK(
      !flat.async_done[find_instruction(program, "q").computation]);  // its done is somewhere else
  CHECK(!flat.async_done[program.entry]);
  for (const auto& [inner, start] : {std::pair("p", "start"), {"r", "start"}, {"q", "start2"}}) {
    CAPTURE(inner);
    CHECK(flat.async_start[find_instruction(program, inner).computation] ==
          flat.position[program.entry][find_instruction(program, start).instruction.index]);
  }
  CHECK(!flat.async_start[program.entry]);
  const Computation& entry = program.entry_computation();
  CHECK(find_done(entry, find_instruction(program, "start").instruction) ==
        find_instruction(program, "done").instruction);
  CHECK(!find_done(entry, find_instruction(program, "start2").instruction));
}

TEST_CASE("a module that is not scheduled is refused") {
  Program program = toy_program(kLoop);
  program.is_scheduled = false;
  const Result<Schedule> schedule = text_schedule(program);
  REQUIRE(!schedule.ok());
  CHECK(to_text(schedule.error()) ==
        "toy.hlo: error: the module is not scheduled (no is_scheduled=true)\n"
        "  memory and time depend on the order XLA chose: give the …after_optimizations.txt of the "
        "dump, not an earlier stage");
}

}  // namespace
}  // namespace spillway
