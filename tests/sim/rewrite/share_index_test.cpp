// An index that is there as a value of its own is read by those who worked it out themselves.
#include "sim/rewrite/share_index.h"

#include <doctest/doctest.h>

#include "model/program/validate.h"
#include "sim/rewrite/async_slice.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;

constexpr const char* kFunctions = R"(
%index {
  %ia = s32[] parameter(0)
  %ib = s32[] constant(3)
  ROOT %ic = s32[] subtract(%ib, %ia)
}
%same {
  %sa = f32[4,8]{1,0} parameter(0)
  %sb = s32[] parameter(1)
  %sc = s32[] constant(3)
  %sd = s32[] subtract(%sc, %sb)
  %se = s32[] constant(0)
  ROOT %sf = f32[1,8]{1,0} dynamic-slice(%sa, %sd, %se), dynamic_slice_sizes={1,8}
}
%other {
  %oa = f32[4,8]{1,0} parameter(0)
  %ob = s32[] parameter(1)
  %oc = s32[] constant(2)
  %od = s32[] subtract(%oc, %ob)
  %oe = s32[] constant(0)
  ROOT %of = f32[1,8]{1,0} dynamic-slice(%oa, %od, %oe), dynamic_slice_sizes={1,8}
}
%inverse {
  %va = f32[4,8]{1,0} parameter(0)
  %vb = s32[] parameter(1)
  %vc = s32[] constant(3)
  %vd = s32[] subtract(%vb, %vc)
  %ve = s32[] constant(0)
  ROOT %vf = f32[1,8]{1,0} dynamic-slice(%va, %vd, %ve), dynamic_slice_sizes={1,8}
}
%negated {
  %na = f32[8]{0} parameter(0)
  ROOT %nb = f32[8]{0} negate(%na)
}
ENTRY %main {
  %w = f32[4,8]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %a = f32[1,8]{1,0} fusion(%w, %i), kind=kLoop, calls=%same
  %b = f32[1,8]{1,0} fusion(%w, %i), kind=kLoop, calls=%other
  %c = f32[1,8]{1,0} fusion(%w, %i), kind=kLoop, calls=%inverse
  %k = s32[] fusion(%i), kind=kLoop, calls=%index
  %flat.renamed = f32[8]{0} bitcast(%a)
  %d = f32[8]{0} fusion(%flat.renamed), kind=kLoop, calls=%negated
  ROOT %r = (f32[8]{0}, f32[1,8]{1,0}, f32[1,8]{1,0}, s32[]) tuple(%d, %b, %c, %k)
}
)";

/// What an instruction of the entry reads: "w,k".
std::string reads(const Program& program, std::string_view name) {
  const InstructionId id = testing::find_instruction(program, name);
  std::string text;
  for (const Operand& operand : program[id.computation].operands(id.instruction))
    text +=
        (text.empty() ? "" : ",") + std::string(program[id.computation][operand.instruction].name);
  return text;
}

void check_valid(const Program& program) {
  const auto unsound = validate(program);
  CHECK_MESSAGE(!unsound, (unsound ? to_text(*unsound) : ""));
}

TEST_CASE("only who works the very index out reads it, and behind it") {
  const Program before = testing::toy_program(kFunctions);
  ProgramEditor editor(before);
  share_index(editor, before.entry, testing::find_instruction(before, "k").instruction.index);
  const Program after = editor.finish();
  check_valid(after);
  CHECK(reads(after, "a") == "w,k");
  CHECK(reads(after, "b") == "w,i");
  CHECK(reads(after, "c") == "w,i");
}

TEST_CASE("loops rename inside what a rewrite has renamed in front of them") {
  const Program before = testing::toy_program(kFunctions);
  CHECK(reads(before, "d") == "flat.renamed");
  ProgramEditor editor(before);
  fuse_renamings(editor, before.entry);
  const Program after = editor.finish();
  check_valid(after);
  CHECK(reads(after, "d") == "a");
}

}  // namespace
}  // namespace spillway
