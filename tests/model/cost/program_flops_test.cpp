#include "model/cost/program_flops.h"

#include <doctest/doctest.h>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::toy_program;

// A loop of five products; a branch of one product or one addition; an async product; cuBLAS; and
// attention. Each product is 2 x 4 x 4 x 4 = 128 flops, each addition 16.
constexpr const char* kProgram = R"(
%body (t: (s32[], f32[4,4])) -> (s32[], f32[4,4]) {
  %t = (s32[], f32[4,4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %m = f32[4,4] get-tuple-element(%t), index=1
  %mm = f32[4,4] dot(%m, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %next = s32[] add(%i, %i)
  ROOT %out = (s32[], f32[4,4]) tuple(%next, %mm)
}

%condition (u: (s32[], f32[4,4])) -> pred[] {
  %u = (s32[], f32[4,4]) parameter(0)
  %j = s32[] get-tuple-element(%u), index=0
  ROOT %less = pred[] compare(%j, %j), direction=LT
}

%dear (a: f32[4,4]) -> f32[4,4] {
  %a = f32[4,4] parameter(0)
  ROOT %aa = f32[4,4] dot(%a, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%cheap (b: f32[4,4]) -> f32[4,4] {
  %b = f32[4,4] parameter(0)
  ROOT %bb = f32[4,4] add(%b, %b)
}

%aside (c: f32[4,4]) -> f32[4,4] {
  %c = f32[4,4] parameter(0)
  ROOT %cc = f32[4,4] dot(%c, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main (p: f32[4,4], zero: s32[], q: bf16[1,4,1,4]) -> f32[4,4] {
  %p = f32[4,4] parameter(0)
  %zero = s32[] parameter(1)
  %q = bf16[1,4,1,4] parameter(2)
  %both = (s32[], f32[4,4]) tuple(%zero, %p)
  %loop = (s32[], f32[4,4]) while(%both), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %branch = f32[4,4] conditional(%zero, %p, %p), branch_computations={%dear, %cheap}
  %start = ((f32[4,4]), f32[4,4]) async-start(%p), calls=%aside
  %done = f32[4,4] async-done(%start)
  %blas = (f32[4,4], s8[16]) custom-call(%p, %p), custom_call_target="__cublas$gemm", backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}
  %flash = (bf16[1,1,4,4], u8[0]) custom-call(%q, %q, %q), custom_call_target="__cudnn$fmhaSoftmax", backend_config={"bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["3"]},"bmm2_dot_dimension_numbers":{"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"intermediate_tensor_shape":{"dimensions":["1","1","4","4"]},"mask_type":"CAUSAL"}
  ROOT %end = f32[4,4] add(%p, %done)
}
)";

TEST_CASE("a step counts every turn of a loop, XLA's analysis one") {
  const ProgramFlops flops = count_flops(toy_program(kProgram));
  constexpr double kProduct = 128, kAddition = 16, kCounting = 2;
  constexpr double kAttention = 2 * 16 * (4 + 4);
  // both branches of the conditional are in the step: which one is taken is not known
  CHECK(flops.dot_per_step == Flops((5 + 1 + 1 + 1) * kProduct));
  CHECK(flops.all_per_step == Flops(8 * kProduct + kAttention / 2 + 2 * kAddition + 5 * kCounting));
  CHECK(flops.xla_cost_analysis == Flops((1 + 1 + 1) * kProduct + kAddition + kCounting));
}

TEST_CASE("trip counts beyond all measure do not wrap around") {
  std::string text = kProgram;
  text.replace(text.find("\"5\""), 3, "\"9223372036854775807\"");
  const ProgramFlops flops = count_flops(toy_program(text));
  CHECK(flops.dot_per_step > Flops(1e20));
}

TEST_CASE("what runs by itself is found with how often it does") {
  const Program program = toy_program(kProgram);
  const auto executed = executed_computations(program);
  CHECK(executed.size() == 6);  // the entry, body, condition, two branches, what is async
  CHECK(executed.front().id == program.entry);
  for (const auto& [id, runs] : executed) {
    const std::string name(program[id].name());
    CAPTURE(name);
    CHECK(runs == (name == "body" || name == "condition" ? 5 : 1));
  }
}

}  // namespace
}  // namespace spillway
