#include "model/memory/operand_sharing.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

bool shares(const Program& program, std::uint32_t operand, ShapeNodeIndex output) {
  const InPlacePairs in_place(program);
  return OperandSharing(program, in_place)
      .may_share(find_instruction(program, "x"), operand, 0, output);
}

constexpr const char* kSum = R"(
%sum (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %plus = f32[] add(%l, %r)
}
)";

TEST_CASE("which operands an instruction by itself may write over") {
  struct Row {
    const char* line;
    std::uint32_t operand;
    ShapeNodeIndex output;
    bool expected;
  };
  const Row rows[] = {
      {"f32[64,64]{1,0} negate(%a)", 0, 0, true},
      {"f32[64,64]{1,0} add(%a, %b)", 1, 0, true},
      {"f32[64,64]{1,0} negate(%constant)", 0, 0, false},
      {"f32[64,64]{1,0} copy(%a)", 0, 0, false},
      {"f32[64,64]{0,1} negate(%a)", 0, 0, false},           // another layout
      {"s32[64,64]{1,0} bitcast-convert(%a)", 0, 0, false},  // another type
      {"f32[64,64]{1,0} transpose(%a), dimensions={1,0}", 0, 0, false},
      {"f32[64,64]{1,0} select(%p, %a, %b)", 1, 0, true},
      {"f32[64,64]{1,0} clamp(%a, %b, %scalar)", 2, 0, false},  // broadcast
      {"f32[64,64]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 0, 0,
       false},
      {"f32[64,64]{1,0} all-reduce(%a), to_apply=%sum", 0, 0, true},
      {"(f32[64,64]{1,0}, f32[64,64]{1,0}) all-reduce(%a, %b), to_apply=%sum", 1, 2, true},
      {"(f32[64,64]{1,0}, f32[64,64]{1,0}) all-reduce(%a, %b), to_apply=%sum", 1, 1, false},
      {"f32[64,64]{1,0} dynamic-update-slice(%a, %row, %i, %i)", 0, 0, true},
      {"f32[1,64]{1,0} dynamic-update-slice(%row, %row, %i, %i)", 1, 0, false},
      {"f32[64,64]{1,0} sort(%a), dimensions={0}, to_apply=%sum", 0, 0,
       false},  // a has other users
      {"f32[64,64]{1,0} sort(%once), dimensions={0}, to_apply=%sum", 0, 0, true},
      {"f32[64,64]{1,0} call(%a), to_apply=%callee", 0, 0, false},
      {"f32[64,64]{1,0} custom-call(%a), custom_call_target=\"f\"", 0, 0, false},
      {"f32[64,64]{1,0} custom-call(%a), custom_call_target=\"f\", "
       "output_to_operand_aliasing={{}: (0, {})}",
       0, 0, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    CAPTURE(row.operand);
    const Program program = toy_program(std::string(kSum) + R"(
%callee (w: f32[64,64]) -> f32[64,64] {
  ROOT %w = f32[64,64]{1,0} parameter(0)
}
ENTRY %main (a: f32[64,64], b: f32[64,64], row: f32[1,64], i: s32[], p: pred[64,64], scalar: f32[]) -> f32[] {
  %a = f32[64,64]{1,0} parameter(0)
  %b = f32[64,64]{1,0} parameter(1)
  %row = f32[1,64]{1,0} parameter(2)
  %i = s32[] parameter(3)
  %p = pred[64,64]{1,0} parameter(4)
  %scalar = f32[] parameter(5)
  %constant = f32[64,64]{1,0} constant({...})
  %once = f32[64,64]{1,0} negate(%b)
  %other = f32[64,64]{1,0} negate(%a)
  %x = )" + row.line + R"(
  ROOT %end = f32[] constant(0)
}
)");
    CHECK(shares(program, row.operand, row.output) == row.expected);
  }
}

TEST_CASE("a cuBLASLt matmul may write over its bias when it adds it") {
  struct Row {
    const char* beta;
    const char* target;
    std::uint32_t operand;
    bool expected;
  };
  const Row rows[] = {
      {"\"beta\":1", "__cublas$lt$matmul", 2, true},
      {"\"beta\":0.5", "__cublas$lt$matmul", 2, true},
      {"\"beta\":0", "__cublas$lt$matmul", 2, false},
      {"\"beta\":0.0", "__cublas$lt$matmul", 2, false},
      {"\"alpha\":1", "__cublas$lt$matmul", 2, false},
      {"\"beta\":1", "__cublas$lt$matmul", 0, false},
      {"\"beta\":1", "__cublas$lt$matmul$f8", 2, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.beta);
    CAPTURE(row.target);
    CAPTURE(row.operand);
    const Program program =
        toy_program(std::string(R"(
ENTRY %main (a: f32[64,64], b: f32[64,64], c: f32[64,64]) -> f32[] {
  %a = f32[64,64]{1,0} parameter(0)
  %b = f32[64,64]{1,0} parameter(1)
  %c = f32[64,64]{1,0} parameter(2)
  %x = (f32[64,64]{1,0}, s8[512]{0}) custom-call(%a, %b, %c), custom_call_target=")") +
                    row.target + "\", backend_config={\"gemm_backend_config\":{" + row.beta + R"(}}
  ROOT %end = f32[] constant(0)
}
)");
    CHECK(shares(program, row.operand, 1) == row.expected);
  }
}

TEST_CASE("a fusion may write over what it reads in the order in which it writes") {
  struct Row {
    const char* name;
    const char* fused;  ///< takes (p0, p1: f32[64,64], i: s32[])
    const char* result;
    std::uint32_t operand;
    ShapeNodeIndex output;
    bool expected;
  };
  const char* const kSquare = "f32[64,64]{1,0}";
  const Row rows[] = {
      {"element by element", "ROOT %r = f32[64,64]{1,0} add(%p0, %p1)", kSquare, 1, 0, true},
      {"as another type of the same size", "ROOT %r = s32[64,64]{1,0} convert(%p0)",
       "s32[64,64]{1,0}", 0, 0, true},
      {"as another shape of the same size",
       "%n = f32[64,64]{1,0} negate(%p0)\n  ROOT %r = f32[4096]{0} bitcast(%n)", "f32[4096]{0}", 0,
       0, true},
      {"as a smaller type", "ROOT %r = bf16[64,64]{1,0} convert(%p0)", "bf16[64,64]{1,0}", 0, 0,
       false},
      {"not read at all", "ROOT %r = f32[64,64]{1,0} negate(%p1)", kSquare, 0, 0, false},
      {"transposed inside",
       "%n = f32[64,64]{1,0} negate(%p0)\n"
       "  ROOT %r = f32[64,64]{1,0} transpose(%n), dimensions={1,0}",
       kSquare, 0, 0, false},
      {"copied inside", "ROOT %r = f32[64,64]{1,0} copy(%p0)", kSquare, 0, 0, false},
      {"broadcast beside",
       "%s = f32[64]{0} slice(%p0), slice={[0:1], [0:64]}\n"
       "  %w = f32[64,64]{1,0} broadcast(%s), dimensions={1}\n"
       "  ROOT %r = f32[64,64]{1,0} add(%p0, %w)",
       kSquare, 0, 0, false},
      {"reduced beside it, by the reduction emitter",
       "%zero = f32[] constant(0)\n"
       "  %rows = f32[64]{0} reduce(%p0, %zero), dimensions={1}, to_apply=%sum\n"
       "  %n = f32[64,64]{1,0} negate(%p0)\n"
       "  ROOT %r = (f32[64]{0}, f32[64,64]{1,0}) tuple(%rows, %n)",
       "(f32[64]{0}, f32[64,64]{1,0})", 0, 2, true},
      {"reduced beside it, over few rows: no emitter of its own",
       "%flat = f32[4,1024]{1,0} bitcast(%p0)\n  %zero = f32[] constant(0)\n"
       "  %columns = f32[1024]{0} reduce(%flat, %zero), dimensions={0}, to_apply=%sum\n"
       "  %n = f32[64,64]{1,0} negate(%p0)\n"
       "  ROOT %r = (f32[1024]{0}, f32[64,64]{1,0}) tuple(%columns, %n)",
       "(f32[1024]{0}, f32[64,64]{1,0})", 0, 2, false},
      {"two outputs element by element",
       "%m = f32[64,64]{1,0} negate(%p0)\n  %n = f32[64,64]{1,0} add(%p0, %p1)\n"
       "  ROOT %r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(%m, %n)",
       "(f32[64,64]{1,0}, f32[64,64]{1,0})", 0, 2, true},
      {"the other output transposes it",
       "%m = f32[64,64]{1,0} transpose(%p0), dimensions={1,0}\n"
       "  %n = f32[64,64]{1,0} add(%p0, %p1)\n"
       "  ROOT %r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(%m, %n)",
       "(f32[64,64]{1,0}, f32[64,64]{1,0})", 0, 2, false},
      {"updated in place",
       "%s = f32[1,64]{1,0} slice(%p1), slice={[0:1], [0:64]}\n"
       "  ROOT %r = f32[64,64]{1,0} dynamic-update-slice(%p0, %s, %i, %i)",
       kSquare, 0, 0, true},
      {"a slice updated where it was read",
       "%s = f32[1,64]{1,0} dynamic-slice(%p0, %i, %i), dynamic_slice_sizes={1,64}\n"
       "  %n = f32[1,64]{1,0} negate(%s)\n"
       "  %u = f32[64,64]{1,0} dynamic-update-slice(%p0, %n, %i, %i)\n"
       "  ROOT %r = f32[4096]{0} bitcast(%u)",
       "f32[4096]{0}", 0, 0, true},
      {"a slice updated elsewhere",
       "%j = s32[] negate(%i)\n"
       "  %s = f32[1,64]{1,0} dynamic-slice(%p0, %j, %i), dynamic_slice_sizes={1,64}\n"
       "  %n = f32[1,64]{1,0} negate(%s)\n"
       "  %u = f32[64,64]{1,0} dynamic-update-slice(%p0, %n, %i, %i)\n"
       "  ROOT %r = f32[4096]{0} bitcast(%u)",
       "f32[4096]{0}", 0, 0, false},
      {"sorted", "ROOT %r = f32[64,64]{1,0} sort(%p0), dimensions={0}, to_apply=%sum", kSquare, 0,
       0, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = toy_program(std::string(kSum) + R"(
%fused (p0: f32[64,64], p1: f32[64,64], i: s32[]) -> f32[] {
  %p0 = f32[64,64]{1,0} parameter(0)
  %p1 = f32[64,64]{1,0} parameter(1)
  %i = s32[] parameter(2)
  )" + row.fused + R"(
}
ENTRY %main (a: f32[64,64], b: f32[64,64], k: s32[]) -> f32[] {
  %a = f32[64,64]{1,0} parameter(0)
  %b = f32[64,64]{1,0} parameter(1)
  %k = s32[] parameter(2)
  %x = )" + row.result + R"( fusion(%a, %b, %k), kind=kLoop, calls=%fused
  ROOT %end = f32[] constant(0)
}
)");
    CHECK(shares(program, row.operand, row.output) == row.expected);
  }
}

}  // namespace
}  // namespace spillway
