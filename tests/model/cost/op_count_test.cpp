#include "model/cost/op_count.h"

#include <doctest/doctest.h>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

/// `line` is the instruction %x of an entry that has the parameters p, q (f32[4,8]), m (bf16[8,2]),
/// i (s32[]) and zero (f32[]); %add sums, %more is greater-than.
OpCount count(const std::string& line) {
  const Program program = toy_program(R"(
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%more (c: f32[], d: f32[]) -> pred[] {
  %c = f32[] parameter(0)
  %d = f32[] parameter(1)
  ROOT %is = pred[] compare(%c, %d), direction=GT
}

%fused (e: f32[4,8], f: f32[4,8]) -> f32[4] {
  %e = f32[4,8] parameter(0)
  %f = f32[4,8] parameter(1)
  %exp = f32[4,8] exponential(%e)
  %product = f32[4,8] multiply(%exp, %f)
  %none = f32[] constant(0)
  ROOT %rows = f32[4] reduce(%product, %none), dimensions={1}, to_apply=%add
}

%gathers (g: f32[4,8], h: s32[2]) -> f32[2,8] {
  %g = f32[4,8] parameter(0)
  %h = s32[2] parameter(1)
  %picked = f32[2,8] gather(%g, %h), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  ROOT %negated = f32[2,8] negate(%picked)
}

ENTRY %main (p: f32[4,8], q: f32[4,8], m: bf16[8,2], i: s32[], zero: f32[], r: s32[2], w: f32[3,3,8,5], v: f32[1,6,6,8]) -> f32[4,8] {
  %p = f32[4,8] parameter(0)
  %q = f32[4,8] parameter(1)
  %m = bf16[8,2] parameter(2)
  %i = s32[] parameter(3)
  %zero = f32[] parameter(4)
  %r = s32[2] parameter(5)
  %w = f32[3,3,8,5] parameter(6)
  %v = f32[1,6,6,8] parameter(7)
  %x = )" + line + R"(
  ROOT %end = f32[4,8] copy(%p)
}
)");
  return count_ops(program, find_instruction(program, "x"));
}

TEST_CASE("vector operations are counted as XLA's cost analysis counts them") {
  struct Row {
    std::string line;
    double flops, transcendentals;
  };
  const Row rows[] = {
      {"f32[4,8] add(%p, %q)", 32, 0},
      {"f32[4,8] tanh(%p)", 0, 32},
      {"bf16[4,8] convert(%p)", 32, 0},
      {"pred[4,8] compare(%p, %q), direction=LT", 32, 0},
      {"f32[4,8] copy(%p)", 0, 0},
      {"f32[8,4] transpose(%p), dimensions={1,0}", 0, 0},
      {"f32[4,8] broadcast(%zero), dimensions={}", 0, 0},
      {"s32[4,8] iota(), iota_dimension=0", 0, 0},
      {"f32[8,8] concatenate(%p, %q), dimensions={0}", 0, 0},
      {"f32[4] reduce(%p, %zero), dimensions={1}, to_apply=%add", 32 - 4, 0},
      {"f32[4,8] reduce-window(%p, %zero), window={size=1x3 pad=0_0x1_1}, to_apply=%add", 64, 0},
      // a window that reaches everything from everywhere is a reduction and a broadcast
      {"f32[4,8] reduce-window(%p, %zero), window={size=1x15 pad=0_0x7_7}, to_apply=%add", 11, 0},
      {"f32[4,8] sort(%p), dimensions={1}, to_apply=%more", 32 * 5, 0},
      {"f32[4,8] map(%p, %q), dimensions={0,1}, to_apply=%add", 32, 0},
      {"f32[4,8] all-reduce(%p), replica_groups={}, to_apply=%add", 32, 0},
      {"f32[8,8] all-gather(%p), replica_groups={{0,1}}, dimensions={0}", 0, 0},
      {"f32[4,8] scatter(%p, %r, %q), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add",
       32, 0},
      {"f32[4] fusion(%p, %q), kind=kInput, calls=%fused", 32 + 28, 32},
      {"f32[2,8] fusion(%p, %r), kind=kLoop, calls=%gathers", 16, 0},
      // XLA looks no further into a custom fusion that gathers
      {"f32[2,8] fusion(%p, %r), kind=kCustom, calls=%gathers", 0, 0},
      {"c64[4,8] fft(%p), fft_type=FFT, fft_length={8}", 8.0 * 3 * 32, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const OpCount ops = count(row.line);
    CHECK(ops.vector_flops == Flops(row.flops));
    CHECK(ops.transcendentals == Flops(row.transcendentals));
    CHECK(ops.dot_flops == Flops(0));
    CHECK(ops.matrix_type.empty());
  }
}

TEST_CASE("matrix products count two operations a multiply-add and know their type") {
  struct Row {
    std::string line;
    double flops;
    const char* type;
    double depth;  // elements summed for one of the result
  };
  const Row rows[] = {
      {"f32[4,4] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={1}", 2 * 16 * 8,
       "tf32", 8},
      {"f32[4,4] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "operand_precision={highest,highest}",
       2 * 16 * 8, "f32", 8},
      {"f32[4,4] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "algorithm=dot_bf16_bf16_f32",
       2 * 16 * 8, "bf16", 8},
      {"f32[] dot(%p, %q), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}", 2 * 32, "tf32",
       32},
      {"bf16[2,2] dot(%m, %m), lhs_contracting_dims={0}, rhs_contracting_dims={0}", 2 * 4 * 8,
       "bf16", 8},
      {"f32[4,2] dot(%p, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 2 * 8 * 8,
       "tf32", 8},
      {"f32[1,4,4,5] convolution(%v, %w), window={size=3x3}, dim_labels=b01f_01io->b01f",
       2.0 * 16 * 5 * 8 * 9, "tf32", 72},
      // of three window places at each of six outputs, the first and the last reach into padding
      {"f32[1,6,6,5] convolution(%v, %w), window={size=3x3 pad=1_1x1_1}, "
       "dim_labels=b01f_01io->b01f",
       2.0 * 5 * 8 * 16 * 16, "tf32", 20480 / 360.0},
      {"f32[1,2,2,5] convolution(%v, %w), window={size=3x3 stride=2x2}, "
       "dim_labels=b01f_01io->b01f",
       2.0 * 4 * 5 * 8 * 9, "tf32", 72},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const OpCount ops = count(row.line);
    CHECK(ops.dot_flops == Flops(row.flops));
    CHECK(ops.library_flops == Flops(0));
    CHECK(ops.vector_flops == Flops(0));
    CHECK(ops.matrix_type == row.type);
    CHECK(ops.depth == doctest::Approx(row.depth));
  }
}

}  // namespace
}  // namespace spillway
