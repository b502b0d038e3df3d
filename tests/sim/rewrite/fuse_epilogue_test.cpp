// Adds that move into the matrix products in front of them, and the forms that the fusions around
// take then.
#include "sim/rewrite/fuse_epilogue.h"

#include <doctest/doctest.h>

#include <string>

#include "model/program/validate.h"
#include "sim/rewrite/form_fusions.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// The two readers of a product: both add x, the second hands the sum on as well; and others.
constexpr const char* kFunctions = R"(
%sum {
  %sa = f32[] parameter(0)
  %sb = f32[] parameter(1)
  ROOT %sc = f32[] add(%sa, %sb)
}
%dot {
  %da = f32[8,8]{1,0} parameter(0)
  %db = f32[8,8]{1,0} parameter(1)
  ROOT %dc = f32[8,8]{1,0} dot(%da, %db), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
%negated {
  %na = f32[8,8]{1,0} parameter(0)
  %nb = f32[64]{0} parameter(1)
  %nc = f32[8,8]{1,0} bitcast(%nb)
  %nd = f32[8,8]{1,0} add(%na, %nc)
  ROOT %ne = f32[8,8]{1,0} negate(%nd)
}
%both {
  %ba = f32[8,8]{1,0} parameter(0)
  %bb = f32[8,8]{1,0} parameter(1)
  %bc = f32[8,8]{1,0} add(%bb, %ba)
  %bd = f32[8,8]{1,0} tanh(%bc)
  ROOT %be = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(%bd, %bc)
}
%only {
  %oa = f32[8,8]{1,0} parameter(0)
  %ob = f32[8,8]{1,0} parameter(1)
  ROOT %oc = f32[8,8]{1,0} add(%oa, %ob)
}
%doubled {
  %ua = f32[8,8]{1,0} parameter(0)
  ROOT %ub = f32[8,8]{1,0} add(%ua, %ua)
}
%first {
  %fa = f32[4,8,8]{2,1,0} parameter(0)
  %fb = s32[] parameter(1)
  %fc = s32[] constant(0)
  %fd = f32[1,8,8]{2,1,0} dynamic-slice(%fa, %fb, %fc, %fc), dynamic_slice_sizes={1,8,8}
  %fe = f32[8,8]{1,0} bitcast(%fd)
  %ff = f32[8,8]{1,0} parameter(2)
  %fg = f32[8,8]{1,0} add(%fe, %ff)
  ROOT %fh = f32[8,8]{1,0} negate(%fg)
}
%siblings {
  %ga = f32[8,8]{1,0} parameter(0)
  %gb = f32[8,8]{1,0} parameter(1)
  %gc = f32[8,8]{1,0} multiply(%ga, %gb)
  %gd = f32[8,8]{1,0} parameter(2)
  %ge = f32[8,8]{1,0} multiply(%ga, %gd)
  ROOT %gf = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(%gc, %ge)
}
%norm {
  %ha = f32[8,8]{1,0} parameter(0)
  %hb = f32[] constant(0)
  %hc = f32[8]{0} reduce(%ha, %hb), dimensions={1}, to_apply=%sum
  %hd = f32[8]{0} rsqrt(%hc)
  %he = f32[8,8]{1,0} broadcast(%hd), dimensions={0}
  ROOT %hf = f32[8,8]{1,0} multiply(%ha, %he)
}
%summed {
  %ia = f32[8,8]{1,0} parameter(0)
  %ib = f32[] constant(0)
  ROOT %ic = f32[8]{0} reduce(%ia, %ib), dimensions={1}, to_apply=%sum
}
%slice_sum {
  %ja = f32[4,8,8]{2,1,0} parameter(0)
  %jb = s32[] parameter(1)
  %jc = s32[] constant(0)
  %jd = f32[1,8,8]{2,1,0} dynamic-slice(%ja, %jb, %jc, %jc), dynamic_slice_sizes={1,8,8}
  %je = f32[8,8]{1,0} bitcast(%jd)
  %jf = f32[] constant(0)
  ROOT %jg = f32[8]{0} reduce(%je, %jf), dimensions={1}, to_apply=%sum
}
%slice {
  %ka = f32[4,8,8]{2,1,0} parameter(0)
  %kb = s32[] parameter(1)
  %kc = s32[] constant(0)
  ROOT %kd = f32[1,8,8]{2,1,0} dynamic-slice(%ka, %kb, %kc, %kc), dynamic_slice_sizes={1,8,8}
}
)";

/// A loop of four layers over (counter, x, stack) whose body has these lines and hands on `%out`.
Program loop_of(const std::string& lines) {
  return testing::toy_program(std::string(kFunctions) + R"(
%less {
  %lp = (s32[], f32[8,8]{1,0}, f32[4,8,8]{2,1,0}) parameter(0)
  %n = s32[] constant(4)
  ROOT %l = pred[] compare(%lp#0, %n), direction=LT
}
%body {
  %p = (s32[], f32[8,8]{1,0}, f32[4,8,8]{2,1,0}) parameter(0)
)" + lines + R"(
  %one = s32[] constant(1)
  %next = s32[] add(%p#0, %one)
  ROOT %r = (s32[], f32[8,8]{1,0}, f32[4,8,8]{2,1,0}) tuple(%next, %out, %p#2)
}
ENTRY %main {
  %a = f32[8,8]{1,0} parameter(0)
  %w = f32[4,8,8]{2,1,0} parameter(1)
  %zero = s32[] constant(0)
  %begin = (s32[], f32[8,8]{1,0}, f32[4,8,8]{2,1,0}) tuple(%zero, %a, %w)
  ROOT %loop = (s32[], f32[8,8]{1,0}, f32[4,8,8]{2,1,0}) while(%begin), condition=%less, body=%body, backend_config={"known_trip_count":{"n":"4"},"known_induction_variable":{"tuple_index":"0"},"known_init_step":{"init":"0","step":"1"}}
}
)");
}

/// "product(p.1,w,x)": fusions and starts of the body with what they read, without renamings.
std::string fusions(const Program& program) {
  const auto unsound = validate(program);
  CHECK_MESSAGE(!unsound, (unsound ? to_text(*unsound) : ""));
  const InstructionId loop = testing::find_instruction(program, "loop");
  const Computation& body = program[program[loop.computation].called(loop.instruction)[1]];
  const auto name = [&](Operand value) {
    const Operand behind = behind_renamings(body, value);
    std::string text(body[behind.instruction].name);
    if (behind.node != 0) text += "." + std::to_string(behind.node - 1);
    return text;
  };
  std::string text;
  for (const InstructionIndex i : body.instructions()) {
    if (body[i].opcode != Opcode::kFusion) continue;
    text += std::string(body[i].name) + "(";
    for (const Operand& operand : body.operands(i)) text += name(operand) + ",";
    text.back() = ')';
    text += " ";
  }
  return text + "-> " + name(body.operands(body.root().instruction)[1]);
}

InstructionId loop_in(const Program& program) { return testing::find_instruction(program, "loop"); }

TEST_CASE("an add moves into the product whose readers all make it") {
  struct Row {
    const char* name;
    const char* lines;
    const char* expected;
  };
  const Row rows[] = {
      {"two readers, one of which hands the sum on", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %flat = f32[64]{0} bitcast(%product)
  %f = f32[8,8]{1,0} fusion(%p#1, %flat), kind=kLoop, calls=%negated
  %g = (f32[8,8]{1,0}, f32[8,8]{1,0}) fusion(%p#1, %product), kind=kLoop, calls=%both
  %h = f32[8,8]{1,0} fusion(%f, %g#0), kind=kLoop, calls=%only
  %out = f32[8,8]{1,0} fusion(%h, %g#1), kind=kLoop, calls=%only)",
       "product(p.1,p.1,p.1) f(product) g(product) h(f,g) out(h,product) -> out"},
      {"a reader that does nothing else goes, and the next product adds its sum", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %s = f32[8,8]{1,0} fusion(%p#1, %product), kind=kLoop, calls=%only
  %second = f32[8,8]{1,0} fusion(%s, %s), kind=kCustom, calls=%dot
  %out = f32[8,8]{1,0} fusion(%second, %s), kind=kLoop, calls=%only)",
       "product(p.1,p.1,p.1) second(product,product,product) -> second"},
      {"a slice that a reader takes itself is taken in front of the product", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %out = f32[8,8]{1,0} fusion(%p#2, %p#0, %product), kind=kLoop, calls=%first)",
       "product.slice(p.2,p.0) product(p.1,p.1,product.slice) out(product) -> out"},
      {"not what is handed on as it is", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %f = f32[8,8]{1,0} fusion(%p#1, %product), kind=kLoop, calls=%only
  %other = f32[8,8]{1,0} custom-call(%f, %product), custom_call_target="f"
  %out = f32[8,8]{1,0} fusion(%p#1, %other), kind=kLoop, calls=%only)",
       "product(p.1,p.1) f(p.1,product) out(p.1,other) -> out"},
      {"not what is added to itself, or to different values", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %f = f32[8,8]{1,0} fusion(%product), kind=kLoop, calls=%doubled
  %second = f32[8,8]{1,0} fusion(%f, %f), kind=kCustom, calls=%dot
  %g = f32[8,8]{1,0} fusion(%p#1, %second), kind=kLoop, calls=%only
  %out = f32[8,8]{1,0} fusion(%g, %second), kind=kLoop, calls=%only)",
       "product(p.1,p.1) f(product) second(f,f) g(p.1,second) out(g,second) -> out"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = loop_of(row.lines);
    const Program fused = fuse_epilogues(program, loop_in(program));
    CHECK(fusions(fused) == row.expected);
    const InstructionId product = testing::find_instruction(fused, "product");
    const Computation& inner = fused[fused[product.computation].called(product.instruction)[0]];
    const bool adds = fused[product.computation].operands(product.instruction).size() == 3;
    CHECK(inner.root_instruction().opcode == (adds ? Opcode::kAdd : Opcode::kDot));
  }
}

TEST_CASE("fusions take the forms that products in front of them allow") {
  struct Row {
    const char* name;
    const char* lines;
    const char* expected;
  };
  const Row rows[] = {
      {"siblings for the sake of a product are fusions of their own", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %f = f32[8,8]{1,0} fusion(%p#1), kind=kLoop, calls=%doubled
  %g = (f32[8,8]{1,0}, f32[8,8]{1,0}) fusion(%product, %p#1, %f), kind=kLoop, calls=%siblings
  %out = f32[8,8]{1,0} fusion(%g#0, %g#1), kind=kLoop, calls=%only)",
       "product(p.1,p.1) f(p.1) g.part0(product,p.1) g.part1(product,f) out(g.part0,g.part1) "
       "-> out"},
      {"siblings for the sake of anything else stay", R"(
  %product = f32[8,8]{1,0} fusion(%p#1, %p#1), kind=kCustom, calls=%dot
  %g = (f32[8,8]{1,0}, f32[8,8]{1,0}) fusion(%p#1, %product, %p#1), kind=kLoop, calls=%siblings
  %out = f32[8,8]{1,0} fusion(%g#0, %g#1), kind=kLoop, calls=%only)",
       "product(p.1,p.1) g(p.1,product,p.1) out(g.0,g.1) -> out"},
      {"a norm whose sum is there anyway", R"(
  %s = f32[8]{0} fusion(%p#1), kind=kInput, calls=%summed
  %m = f32[8,8]{1,0} fusion(%p#1), kind=kCustom, calls=%norm
  %out = f32[8,8]{1,0} custom-call(%m, %s), custom_call_target="f")",
       "s(p.1) m.statistic(s) m.scaled(p.1,m.statistic) -> out"},
      {"a norm whose sum nobody else needs", R"(
  %s = f32[8]{0} fusion(%p#1), kind=kInput, calls=%summed
  %d = f32[8,8]{1,0} fusion(%p#1), kind=kLoop, calls=%doubled
  %m = f32[8,8]{1,0} fusion(%d), kind=kCustom, calls=%norm
  %out = f32[8,8]{1,0} custom-call(%m, %s), custom_call_target="f")",
       "s(p.1) d(p.1) m(d) -> out"},
      {"a reduction of a slice hands the slice out", R"(
  %x = f32[1,8,8]{2,1,0} fusion(%p#2, %p#0), kind=kLoop, calls=%slice
  %s = f32[8]{0} fusion(%p#2, %p#0), kind=kInput, calls=%slice_sum
  %out = f32[8,8]{1,0} custom-call(%x, %s), custom_call_target="f")",
       "s.sliced(p.2,p.0) -> out"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = loop_of(row.lines);
    CHECK(fusions(form_fusions(program, loop_in(program))) == row.expected);
  }
}

}  // namespace
}  // namespace spillway
