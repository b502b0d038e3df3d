// Values computed once: told by how they are computed, whatever form that has, and by the JAX
// operation they come from.
#include "sim/rewrite/merge_equal.h"

#include <doctest/doctest.h>

#include "model/program/validate.h"
#include "sim/rewrite/drop_dead.h"
#include "tests/sim/rewrite/describe.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// A loop of four layers, the last first, whose body has these lines between its parameter
/// (counter, x, weights) and its root, which hands on `%out`.
std::string loop_of(const std::string& functions, const std::string& lines) {
  return functions + R"(
%less {
  %lp = (s32[], f32[8]{0}, f32[4,8]{1,0}) parameter(0)
  %n = s32[] constant(4)
  ROOT %l = pred[] compare(%lp#0, %n), direction=LT
}

%body {
  %p = (s32[], f32[8]{0}, f32[4,8]{1,0}) parameter(0)
)" + lines +
         R"(
  %one = s32[] constant(1)
  %next = s32[] add(%p#0, %one)
  ROOT %r = (s32[], f32[8]{0}, f32[4,8]{1,0}) tuple(%next, %out, %p#2)
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %w = f32[4,8]{1,0} parameter(1)
  %zero = s32[] constant(0)
  %begin = (s32[], f32[8]{0}, f32[4,8]{1,0}) tuple(%zero, %a, %w)
  ROOT %loop = (s32[], f32[8]{0}, f32[4,8]{1,0}) while(%begin), condition=%less, body=%body, backend_config={"known_trip_count":{"n":"4"},"known_induction_variable":{"tuple_index":"0"},"known_init_step":{"init":"0","step":"1"}}
}
)";
}

bool is_added(const Instruction& instruction) { return instruction.name.starts_with("new"); }

/// The body in a line, merged, without what is dead and without what every body has.
std::string merged(const std::string& functions, const std::string& lines) {
  const Program program = testing::toy_program(loop_of(functions, lines));
  const InstructionId loop = testing::find_instruction(program, "loop");
  const Program result = drop_dead(merge_equal(program, loop, is_added));
  const auto unsound = validate(result);
  CHECK_MESSAGE(!unsound, (unsound ? to_text(*unsound) : ""));
  const ComputationId body =
      result[loop.computation].called(testing::find_instruction(result, "loop").instruction)[1];
  std::string text = testing::describe(result[body]);
  return text.substr(0, text.find(" one next"));
}

TEST_CASE("two ways of writing the same computation") {
  // 3 - i, sliced in a fusion; and an index of its own, sliced by itself.
  const std::string functions = R"(
%sliced {
  %s0 = f32[4,8]{1,0} parameter(0)
  %s1 = s32[] parameter(1)
  %three = s32[] constant(3)
  %k = s32[] subtract(%three, %s1)
  %z = s32[] constant(0)
  %ds = f32[1,8]{1,0} dynamic-slice(%s0, %k, %z), dynamic_slice_sizes={1,8}
  ROOT %sm = f32[1,8]{1,0} negate(%ds)
}
%last {
  %i = s32[] parameter(0)
  %m = s32[] constant(-1)
  %im = s32[] multiply(%i, %m)
  %t = s32[] constant(3)
  ROOT %j = s32[] add(%t, %im)
}
)";
  CHECK(merged(functions, R"(
  %new.j = s32[] fusion(%p#0), kind=kLoop, calls=%last
  %zz = s32[] constant(0)
  %new.slice = f32[1,8]{1,0} dynamic-slice(%p#2, %new.j, %zz), dynamic_slice_sizes={1,8}
  %new.minus = f32[1,8]{1,0} negate(%new.slice)
  %new.flat = f32[8]{0} bitcast(%new.minus)
  %old = f32[1,8]{1,0} fusion(%p#2, %p#0), kind=kLoop, calls=%sliced
  %flat = f32[8]{0} bitcast(%old)
  %out = f32[8]{0} add(%flat, %new.flat))") ==
        "p old(p#3,p#1) new.flat(old) flat(old) out(flat,new.flat)");
}

TEST_CASE("another layer is another value") {
  const std::string same =
      "  %zz = s32[] constant(0)\n"
      "  %old.s = f32[1,8]{1,0} dynamic-slice(%p#2, %p#0, %zz), "
      "dynamic_slice_sizes={1,8}\n"
      "  %k = s32[] constant(3)\n  %j = s32[] subtract(%k, %p#0)\n"
      "  %new.s = f32[1,8]{1,0} dynamic-slice(%p#2, %j, %zz), "
      "dynamic_slice_sizes={1,8}\n"
      "  %both = f32[1,8]{1,0} add(%old.s, %new.s)\n"
      "  %out = f32[8]{0} bitcast(%both)";
  CHECK(merged("", same) ==
        "p zz old.s(p#3,p#1,zz) k j(k,p#1) new.s(p#3,j,zz) both(old.s,new.s) out(both)");
}

TEST_CASE("an index with an end is not the index it begins as") {
  const std::string ends = R"(
  %zz = s32[] constant(0)
  %two = s32[] constant(2)
  %less2 = s32[] subtract(%p#0, %two)
  %late = s32[] maximum(%less2, %zz)
  %old.s = f32[1,8]{1,0} dynamic-slice(%p#2, %zz, %zz), dynamic_slice_sizes={1,8}
  %new.s = f32[1,8]{1,0} dynamic-slice(%p#2, %late, %zz), dynamic_slice_sizes={1,8}
  %both = f32[1,8]{1,0} add(%old.s, %new.s)
  %out = f32[8]{0} bitcast(%both))";
  CHECK(merged("", ends).ends_with("both(old.s,new.s) out(both)"));
}

TEST_CASE("reductions of several results are as different as what they apply") {
  const auto reducer = [](const std::string& name, const std::string& operation) {
    return "%" + name + " {\n  %a" + name + " = f32[] parameter(0)\n  %b" + name +
           " = f32[] parameter(1)\n  %c" + name + " = f32[] parameter(2)\n  %d" + name +
           " = f32[] parameter(3)\n  %x" + name + " = f32[] " + operation + "(%a" + name + ", %c" +
           name + ")\n  %y" + name + " = f32[] " + operation + "(%b" + name + ", %d" + name +
           ")\n  ROOT %r" + name + " = (f32[], f32[]) tuple(%x" + name + ", %y" + name + ")\n}\n";
  };
  const auto body = [](const std::string& applied) {
    return "  %z = f32[] constant(0)\n"
           "  %old = (f32[4]{0}, f32[4]{0}) reduce(%p#2, %p#2, %z, %z), dimensions={1}, "
           "to_apply=%sum\n"
           "  %new = (f32[4]{0}, f32[4]{0}) reduce(%p#2, %p#2, %z, %z), dimensions={1}, "
           "to_apply=%" +
           applied +
           "\n  %both = f32[4]{0} add(%old#0, %new#1)\n"
           "  %out = f32[8]{0} custom-call(%both), custom_call_target=\"f\"";
  };
  const std::string functions =
      reducer("sum", "add") + reducer("same", "add") + reducer("most", "maximum");
  CHECK(merged(functions, body("same")).ends_with("both(old#1,old#2) out(both)"));
  CHECK(merged(functions, body("most")).ends_with("both(old#1,new#2) out(both)"));
}

TEST_CASE("order of a sum, renamings and combined collectives do not matter, their operands do") {
  const std::string gathers = R"(
  %o = f32[8]{0} tanh(%p#1)
  %pair = (f32[32]{0}, f32[32]{0}) all-gather(%p#1, %o), replica_groups={{0,1,2,3}}, dimensions={0}
  %new.one = f32[32]{0} all-gather(%o), channel_id=7, replica_groups={{0,1,2,3}}, dimensions={0}
  %new.half = f32[32]{0} all-gather(%o), replica_groups={{0,1},{2,3}}, dimensions={0}
  %new.sum = f32[32]{0} add(%new.one, %pair#0)
  %sum = f32[32]{0} add(%pair#0, %pair#1)
  %all = f32[32]{0} add(%sum, %new.sum)
  %most = f32[32]{0} add(%all, %new.half)
  %out = f32[8]{0} custom-call(%most), custom_call_target="f")";
  CHECK(merged("", gathers) ==
        "p o(p#2) pair(p#2,o) new.half(o) sum(pair#1,pair#2) all(sum,sum) most(all,new.half) "
        "out(most)");
}

TEST_CASE("nothing is merged with what needs it") {
  // The fusion gives minus x, and something of the new value beside it.
  const std::string functions = R"(
%two {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %minus = f32[8]{0} negate(%x)
  %other = f32[8]{0} tanh(%y)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%minus, %other)
}
)";
  CHECK(merged(functions, R"(
  %new.minus = f32[8]{0} negate(%p#1)
  %old = (f32[8]{0}, f32[8]{0}) fusion(%p#1, %new.minus), kind=kLoop, calls=%two
  %out = f32[8]{0} add(%old#0, %old#1))") == "p new.minus(p#2) old(new.minus) out(new.minus,old)");
}

TEST_CASE("one operation of JAX, carried out in two ways") {
  const auto metadata = [](const std::string& path, int frame) {
    return "metadata={op_name=\"jit(step)/" + path + "\" stack_frame_id=" + std::to_string(frame) +
           "}";
  };
  const auto body = [&](const std::string& path, int frame) {
    return "  %new.dot = f32[8]{0} dot(%p#2, %p#1), lhs_contracting_dims={1}, "
           "rhs_contracting_dims={0}, " +
           metadata("jvp()/while/body/mlp/dot_general", 5) +
           "\n  %t = f32[8,4]{0,1} bitcast(%p#2)\n"
           "  %old.dot = f32[8]{0} dot(%p#1, %t), lhs_contracting_dims={0}, "
           "rhs_contracting_dims={0}, " +
           metadata(path, frame) + "\n  %out = f32[8]{0} add(%old.dot, %new.dot)";
  };
  const std::string one = "p t(p#3) old.dot(p#2,t) out(old.dot,old.dot)";
  const std::string two = "p new.dot(p#3,p#2) t(p#3) old.dot(p#2,t) out(old.dot,new.dot)";
  const std::string again = "transpose(jvp())/while/body/checkpoint/rematted_computation/";
  CHECK(merged("", body(again + "mlp/dot_general", 5)) == one);
  CHECK(merged("", body(again + "mlp/dot_general", 6)) == two);
  CHECK(merged("", body(again + "attention/dot_general", 5)) == two);
  CHECK(merged("", body("transpose(jvp())/while/body/mlp/dot_general", 5)) == two);
}

TEST_CASE("several products with one matrix, made as one, however it is written") {
  // [8] as [2,4] with 3 + 1 columns, the larger product turned.
  const std::string functions = R"(
%both {
  %a = f32[2,4]{1,0} parameter(0)
  %w3 = f32[4,3]{1,0} parameter(1)
  %w1 = f32[4,1]{1,0} parameter(2)
  %side = f32[4,4]{1,0} concatenate(%w3, %w1), dimensions={1}
  %turned = f32[4,2]{0,1} dot(%side, %a), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  ROOT %whole = f32[2,4]{1,0} bitcast(%turned)
}
%cut {
  %w = f32[2,4]{1,0} parameter(0)
  %three = f32[1,2,4]{2,1,0} bitcast(%w)
  %piece = f32[1,2,COLUMNS]{2,1,0} slice(%three), slice={[0:1], [0:2], [RANGE]}
  ROOT %m = f32[1,2,COLUMNS]{2,1,0} negate(%piece)
}
)";
  const auto cut = [&](const std::string& columns, const std::string& range) {
    std::string text = functions;
    for (std::size_t at; (at = text.find("COLUMNS")) != std::string::npos;)
      text.replace(at, 7, columns);
    return text.replace(text.find("RANGE"), 5, range);
  };
  const auto body = [](const std::string& columns, const std::string& matrix) {
    return "  %x = f32[2,4]{1,0} bitcast(%p#1)\n"
           "  %three = f32[4,3]{1,0} slice(%p#2), slice={[0:4], [0:3]}\n"
           "  %last = f32[4,1]{1,0} slice(%p#2), slice={[0:4], [7:8]}\n"
           "  %new.dot = f32[2,4]{1,0} fusion(%x, %three, %last), kind=kCustom, calls=%both\n"
           "  %new.cut = f32[1,2," +
           columns +
           "]{2,1,0} fusion(%new.dot), kind=kLoop, calls=%cut\n"
           "  %dot = f32[2," +
           columns + "]{1,0} dot(%x, %" + matrix +
           "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
           "  %minus = f32[2," +
           columns +
           "]{1,0} negate(%dot)\n"
           "  %out = f32[8]{0} custom-call(%minus, %new.cut), custom_call_target=\"f\"";
  };
  // A bitcast stands where the cut was.
  CHECK(merged(cut("3", "0:3"), body("3", "three")) ==
        "p x(p#2) three(p#3) dot(x,three) minus(dot) new.cut.renamed(minus) "
        "out(minus,new.cut.renamed)");
  CHECK(merged(cut("1", "3:4"), body("1", "last")) ==
        "p x(p#2) last(p#3) dot(x,last) minus(dot) new.cut.renamed(minus) "
        "out(minus,new.cut.renamed)");
  CHECK_MESSAGE(merged(cut("1", "2:3"), body("1", "last")).find("new.dot") != std::string::npos,
                "part of one matrix is no piece");
  CHECK_MESSAGE(merged(cut("3", "1:4"), body("3", "three")).find("new.dot") != std::string::npos,
                "a piece begins where its matrix does");
}

TEST_CASE("a count and a constant, spread over an array or found there") {
  const std::string lines = R"(
  %c = f32[] constant(2)
  %row = s32[4]{0} iota(), iota_dimension=0
  %new.rows = s32[2,4]{1,0} broadcast(%row), dimensions={DIM}
  %rows = s32[2,4]{1,0} iota(), iota_dimension=1
  %new.minus = f32[] negate(%c)
  %new.all = f32[2,4]{1,0} broadcast(%new.minus), dimensions={}
  %full = f32[2,4]{1,0} broadcast(%c), dimensions={}
  %all = f32[2,4]{1,0} negate(%full)
  %out = f32[8]{0} custom-call(%rows, %new.rows, %all, %new.all), custom_call_target="f")";
  std::string counts = lines;
  counts.replace(counts.find("DIM"), 3, "1");
  CHECK(merged("", counts) == "p c rows full(c) all(full) out(rows,rows,all,all)");
}

TEST_CASE("counting along another dimension is another value") {
  CHECK(merged("", R"(
  %row = s32[4]{0} iota(), iota_dimension=0
  %new.rows = s32[4,4]{1,0} broadcast(%row), dimensions={0}
  %rows = s32[4,4]{1,0} iota(), iota_dimension=1
  %out = f32[8]{0} custom-call(%rows, %new.rows), custom_call_target="f")") ==
        "p row new.rows(row) rows out(rows,new.rows)");
}

TEST_CASE("a mask that two fusions arrange in two ways is told by its JAX operation") {
  const std::string functions = R"(
%turned {
  %a = f32[4,8]{1,0} parameter(0)
  ROOT %ta = f32[8,4]{1,0} transpose(%a), dimensions={1,0}
}
%kept {
  %b = f32[4,8]{1,0} parameter(0)
  ROOT %tb = f32[4,8]{1,0} tanh(%b)
}
)";
  const auto body = [](const std::string& path, const std::string& calls, const std::string& dims) {
    return "  %new.mask = f32[" + dims + "]{1,0} fusion(%p#2), kind=kInput, calls=%" + calls +
           ", metadata={op_name=\"jit(step)/jvp()/while/body/" + path +
           "\" stack_frame_id=5}\n"
           "  %mask = f32[4,8]{1,0} fusion(%p#2), kind=kLoop, calls=%kept, "
           "metadata={op_name=\"jit(step)/transpose(jvp())/while/body/checkpoint/"
           "rematted_computation/mask/eq\" stack_frame_id=5}\n"
           "  %out = f32[8]{0} custom-call(%mask, %new.mask), custom_call_target=\"f\"";
  };
  CHECK(merged(functions, body("mask/eq", "turned", "8,4")) ==
        "p mask(p#3) new.mask.renamed(mask) out(mask,new.mask.renamed)");
  const std::string two = "p new.mask(p#3) mask(p#3) out(mask,new.mask)";
  CHECK(merged(functions, body("mask/lt", "turned", "8,4")) == two);
  // Arranged alike, they would have the same key if they were the same.
  CHECK(merged(functions + "%other {\n  %o = f32[4,8]{1,0} parameter(0)\n"
                           "  ROOT %to = f32[4,8]{1,0} negate(%o)\n}\n",
               body("mask/eq", "other", "4,8")) == two);
}

}  // namespace
}  // namespace spillway
