#include "sim/rewrite/open_collectives.h"

#include <doctest/doctest.h>

#include "model/memory/memory_report.h"
#include "model/program/validate.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

TEST_CASE("a collective becomes a start and a done where it stood") {
  const Program program = testing::toy_program(R"(
%sum {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %s = f32[] add(%p, %q)
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %b = f32[64]{0} all-gather(%a), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
  %x = f32[64]{0} custom-call(%b), custom_call_target="f"
  %pair = (f32[64]{0}, f32[64]{0}) all-reduce(%x, %b), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%sum
  ROOT %out = f32[64]{0} custom-call(%pair#0, %pair#1), custom_call_target="f"
}
)");
  const Program opened = open_collectives(program);
  const auto unsound = validate(opened);
  CHECK_MESSAGE(!unsound, (unsound ? to_text(*unsound) : ""));
  const Computation& entry = opened.entry_computation();
  std::string text;
  for (const InstructionIndex i : entry.instructions())
    text += std::string(entry[i].name) + "=" + std::string(opcode_name(entry[i].opcode)) + " ";
  CHECK(text ==
        "a=parameter b.start=async-start b=async-done x=custom-call pair.start=async-start "
        "pair=async-done out=custom-call ");
  const InstructionId start = testing::find_instruction(opened, "b.start");
  const Computation& wrapped = opened[entry.called(start.instruction)[0]];
  CHECK(wrapped.root_instruction().opcode == Opcode::kAllGather);
  CHECK(wrapped.attribute(wrapped.root().instruction, "dimensions") == "{0}");
  CHECK(entry.operands(testing::find_instruction(opened, "out").instruction)[1] ==
        Operand{testing::find_instruction(opened, "pair").instruction, 2});
}

TEST_CASE("hints for the scheduler and dependencies without data are handed on") {
  const Program opened = open_collectives(testing::toy_program(R"(
ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %x = f32[8]{0} negate(%a)
  %b = f32[64]{0} all-gather(%a), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}, control-predecessors={%x}, frontend_attributes={_scheduling_group_id="3"}, metadata={op_name="gather"}
  ROOT %y = f32[8]{0} add(%a, %x), control-predecessors={%b}
}
)"));
  const auto attribute = [&](const char* instruction, const char* name) {
    const InstructionId id = testing::find_instruction(opened, instruction);
    return opened[id.computation].attribute(id.instruction, name).value_or("none");
  };
  CHECK(attribute("b.start", "control-predecessors") == "{%x}");
  CHECK(attribute("b", "control-predecessors") == "none");
  CHECK(attribute("wrapped.b", "control-predecessors") == "none");
  CHECK(attribute("y", "control-predecessors") == "{%b}");
  for (const char* instruction : {"b.start", "b"}) {
    CAPTURE(instruction);
    CHECK(attribute(instruction, "frontend_attributes") == R"({_scheduling_group_id="3"})");
    CHECK(attribute(instruction, "metadata") == R"({op_name="gather"})");
  }
  CHECK(attribute("wrapped.b", "dimensions") == "{0}");
}

TEST_CASE("what runs asynchronously already stays as it is") {
  const Program program = testing::toy_program(R"(
%gather {
  %p = f32[8]{0} parameter(0)
  ROOT %g = f32[64]{0} all-gather(%p), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %start = ((f32[8]{0}), f32[64]{0}) async-start(%a), calls=%gather
  ROOT %done = f32[64]{0} async-done(%start)
}
)");
  const Program opened = open_collectives(program);
  CHECK(opened.computations.size() == program.computations.size());
  CHECK(opened.entry_computation().size() == 3);
}

}  // namespace
}  // namespace spillway
