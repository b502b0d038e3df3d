// Copies of a carry that stay for those who read it late, and go where nobody does.
#include "sim/schedule/drop_copies.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

Schedule order_of_text(const Program& program) {
  Schedule schedule;
  schedule.order.resize(program.computations.size());
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions()) schedule.order[id].push_back(i);
  return schedule;
}

TEST_CASE("a copy of the carry goes where its readers have run before the next value is made") {
  struct Row {
    const char* name;
    const char* lines;
    bool stays;
  };
  const Row rows[] = {
      {"read before",
       "  %y = f32[8]{0} fusion(%x), kind=kLoop, calls=%f\n"
       "  %out = f32[8]{0} fusion(%y), kind=kLoop, calls=%f\n",
       false},
      {"read by who makes it", "  %out = f32[8]{0} fusion(%x), kind=kLoop, calls=%f\n", true},
      {"read behind",
       "  %out = f32[8]{0} fusion(%p#2), kind=kLoop, calls=%f\n"
       "  %y = f32[8]{0} fusion(%x), kind=kLoop, calls=%f\n",
       true},
      {"read behind, renamed",
       "  %z = f32[2,4]{1,0} bitcast(%x)\n"
       "  %out = f32[8]{0} fusion(%p#2), kind=kLoop, calls=%f\n"
       "  %back = f32[8]{0} bitcast(%z)\n"
       "  %y = f32[8]{0} fusion(%back), kind=kLoop, calls=%f\n",
       true},
      {"handed to a call that may write it",
       "  %y = f32[8]{0} custom-call(%x), custom_call_target=\"f\"\n"
       "  %out = f32[8]{0} fusion(%y), kind=kLoop, calls=%f\n",
       true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = testing::toy_program(std::string(R"(
%f {
  %a = f32[8]{0} parameter(0)
  ROOT %b = f32[8]{0} negate(%a)
}
%less {
  %lp = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  %n = s32[] constant(4)
  ROOT %l = pred[] compare(%lp#0, %n), direction=LT
}
%body {
  %p = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  %x = f32[8]{0} copy(%p#1)
)") + row.lines + R"(
  %one = s32[] constant(1)
  %next = s32[] add(%p#0, %one)
  ROOT %r = (s32[], f32[8]{0}, f32[8]{0}) tuple(%next, %out, %p#2)
}
ENTRY %main {
  %begin = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  ROOT %loop = (s32[], f32[8]{0}, f32[8]{0}) while(%begin), condition=%less, body=%body
}
)");
    const Program dropped = drop_copies(program, order_of_text(program));
    const InstructionId copy = testing::find_instruction(dropped, "x");
    CHECK(dropped[copy.computation][copy.instruction].opcode ==
          (row.stays ? Opcode::kCopy : Opcode::kBitcast));
  }
}

}  // namespace
}  // namespace spillway
