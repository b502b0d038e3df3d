#include "sim/schedule/recompute_fences.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// "a<b": a must run before b.
std::string fences_of(const Program& program) {
  const MemoryAssignment given = assign_memory(program, testing::toy_schedule(program));
  const auto fences = find_recompute_fences(program, given);
  std::string text;
  for (const Precedence& fence : fences[program.entry])
    text += std::string(program.entry_computation()[fence.first].name) + "<" +
            std::string(program.entry_computation()[fence.then].name) + " ";
  return text;
}

TEST_CASE("recomputation and reloads wait for the gradient that they meet first") {
  CHECK(fences_of(testing::read_entry(R"(
  %x = f32[64]{0} parameter(0)
  %g2 = f32[64]{0} custom-call(%x), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
  %again = f32[64]{0} custom-call(%x), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/checkpoint/rematted_computation/mul"}
  %more = f32[64]{0} custom-call(%again), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/checkpoint/rematted_computation/add"}
  %g1 = f32[64]{0} custom-call(%more, %g2), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
  ROOT %g0 = f32[64]{0} custom-call(%g1), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
)")) == "g2<again ");
  CHECK(fences_of(testing::read_entry(R"(
  %x = f32[64]{0:S(5)} parameter(0)
  %y = f32[64]{0} parameter(1)
  %g2 = f32[64]{0} custom-call(%y), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
  %start = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%x)
  %done = f32[64]{0} copy-done(%start)
  ROOT %g1 = f32[64]{0} custom-call(%done, %g2), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
)")) == "g2<start ");
}

TEST_CASE("not for one that came after") {
  CHECK(fences_of(testing::read_entry(R"(
  %x = f32[64]{0} parameter(0)
  %again = f32[64]{0} custom-call(%x), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/checkpoint/rematted_computation/mul"}
  %g2 = f32[64]{0} custom-call(%x), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
  ROOT %g1 = f32[64]{0} custom-call(%again, %g2), custom_call_target="f", metadata={op_name="jit(s)/transpose(jvp())/mul"}
)")) == "");
}

}  // namespace
}  // namespace spillway
