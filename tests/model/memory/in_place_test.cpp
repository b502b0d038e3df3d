#include "model/memory/in_place.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

/// "operand 1{0} -> {2}": what `x` of a program keeps in place.
std::string pairs_of(const std::string& text) {
  const Program program = toy_program(text);
  const InstructionId id = find_instruction(program, "x");
  const Computation& computation = program[id.computation];
  std::string result;
  for (const InPlacePair& pair : InPlacePairs(program).of(id)) {
    const Shape from =
        computation.shape_of(computation.operands(id.instruction)[pair.operand_number]);
    result += (result.empty() ? "" : ", ") + std::to_string(pair.operand_number) +
              path_to_string(from, pair.operand_node) + " -> " +
              path_to_string(program[id].shape, pair.output);
  }
  return result;
}

/// A stack of 8 layers of 2 floats, one layer, an index, and `x`, which is `line`.
std::string entry(const std::string& line) {
  return R"(
%sum (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %plus = f32[] add(%l, %r)
}
ENTRY %main (stack: f32[8,2], layer: f32[1,2], i: s32[], picks: s32[3,1], rows: f32[3,2]) -> f32[] {
  %stack = f32[8,2]{1,0} parameter(0)
  %layer = f32[1,2]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %picks = s32[3,1]{1,0} parameter(3)
  %rows = f32[3,2]{1,0} parameter(4)
  %both = (f32[8,2]{1,0}, f32[8,2]{1,0}) tuple(%stack, %stack)
  %x = )" +
         line + R"(
  ROOT %end = f32[] constant(0)
}
)";
}

TEST_CASE("which instructions write over an operand") {
  struct Row {
    const char* line;
    const char* pairs;
  };
  const Row rows[] = {
      {"f32[8,2]{1,0} dynamic-update-slice(%stack, %layer, %i, %i)", "0{} -> {}"},
      {"f32[8,2]{1,0} scatter(%stack, %picks, %rows), update_window_dims={1}, "
       "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
       "to_apply=%sum",
       "0{} -> {}"},
      {"(f32[8,2]{1,0}, f32[8,2]{1,0}) scatter(%stack, %stack, %picks, %rows, %rows), "
       "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
       "index_vector_dim=1, to_apply=%sum",
       "0{} -> {0}, 1{} -> {1}"},
      {"f32[8,2]{1,0} all-reduce-start(%stack), to_apply=%sum", "0{} -> {}"},
      {"(f32[8,2]{1,0}, f32[1,2]{1,0}) all-reduce-start(%stack, %layer), to_apply=%sum",
       "0{} -> {0}, 1{} -> {1}"},
      {"f32[8,2]{1,0} all-reduce(%stack), to_apply=%sum", ""},
      {"f32[8,2]{1,0} negate(%stack)", ""},
      {"f32[8,2]{1,0} custom-call(%layer, %stack), custom_call_target=\"f\", "
       "output_to_operand_aliasing={{}: (1, {})}",
       "1{} -> {}"},
      {"(f32[1,2]{1,0}, f32[8,2]{1,0}) custom-call(%layer, %both), custom_call_target=\"f\", "
       "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {1})}",
       "0{} -> {0}, 1{1} -> {1}"},
      {"f32[8,2]{1,0} custom-call(%layer, %stack), custom_call_target=\"f\"", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    CHECK(pairs_of(entry(row.line)) == row.pairs);
  }
}

TEST_CASE("a fusion is in place when what makes its output is") {
  struct Row {
    const char* name;
    const char* fused;  ///< takes (p0: stack, p1: layer, p2: index)
    const char* result;
    const char* pairs;
  };
  const Row rows[] = {
      {"ends in an update", R"(
  ROOT %u = f32[8,2]{1,0} dynamic-update-slice(%p0, %p1, %p2, %p2))",
       "f32[8,2]{1,0}", "0{} -> {}"},
      {"bitcasts around the update", R"(
  %b = f32[4,2,2]{2,1,0} bitcast(%p0)
  %s = f32[1,1,2]{2,1,0} bitcast(%p1)
  %u = f32[4,2,2]{2,1,0} dynamic-update-slice(%b, %s, %p2, %p2, %p2)
  ROOT %r = f32[8,2]{1,0} bitcast(%u))",
       "f32[8,2]{1,0}", "0{} -> {}"},
      {"several outputs", R"(
  %n = f32[1,2]{1,0} negate(%p1)
  %u = f32[8,2]{1,0} dynamic-update-slice(%p0, %n, %p2, %p2)
  ROOT %t = (f32[1,2]{1,0}, f32[8,2]{1,0}) tuple(%n, %u))",
       "(f32[1,2]{1,0}, f32[8,2]{1,0})", "0{} -> {1}"},
      {"updates something computed", R"(
  %n = f32[8,2]{1,0} negate(%p0)
  ROOT %u = f32[8,2]{1,0} dynamic-update-slice(%n, %p1, %p2, %p2))",
       "f32[8,2]{1,0}", ""},
      {"computes behind the update", R"(
  %u = f32[8,2]{1,0} dynamic-update-slice(%p0, %p1, %p2, %p2)
  ROOT %n = f32[8,2]{1,0} negate(%u))",
       "f32[8,2]{1,0}", ""},
      {"an inner fusion makes the update", R"(
  ROOT %u = f32[8,2]{1,0} fusion(%p0, %p1, %p2), kind=kLoop, calls=%inner)",
       "f32[8,2]{1,0}", "0{} -> {}"},
      {"an update of what an inner fusion updated", R"(
  %u = f32[8,2]{1,0} fusion(%p0, %p1, %p2), kind=kLoop, calls=%inner
  ROOT %v = f32[8,2]{1,0} dynamic-update-slice(%u, %p1, %p2, %p2))",
       "f32[8,2]{1,0}", "0{} -> {}"},
      {"a custom call inside that says so", R"(
  ROOT %c = f32[8,2]{1,0} custom-call(%p1, %p0), custom_call_target="f", output_to_operand_aliasing={{}: (1, {})})",
       "f32[8,2]{1,0}", "0{} -> {}"},
  };
  const std::string inner = R"(
%inner (i0: f32[8,2], i1: f32[1,2], i2: s32[]) -> f32[8,2] {
  %i0 = f32[8,2]{1,0} parameter(0)
  %i1 = f32[1,2]{1,0} parameter(1)
  %i2 = s32[] parameter(2)
  ROOT %iu = f32[8,2]{1,0} dynamic-update-slice(%i0, %i1, %i2, %i2)
}
)";
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string fused =
        inner + "%fused (p0: f32[8,2], p1: f32[1,2], p2: s32[]) -> f32[] {\n" +
        "  %p0 = f32[8,2]{1,0} parameter(0)\n" + "  %p1 = f32[1,2]{1,0} parameter(1)\n" +
        "  %p2 = s32[] parameter(2)" + row.fused + "\n}\n";
    CHECK(pairs_of(fused + entry(std::string(row.result) +
                                 " fusion(%stack, %layer, %i), kind=kLoop, calls=%fused")) ==
          row.pairs);
  }
}

TEST_CASE("an async start is in place where it says so; the update inside is by itself") {
  const std::string wrapped = R"(
%wrapped (w0: f32[8,2], w1: f32[1,2], w2: s32[]) -> f32[8,2] {
  %w0 = f32[8,2]{1,0} parameter(0)
  %w1 = f32[1,2]{1,0} parameter(1)
  %w2 = s32[] parameter(2)
  ROOT %wu = f32[8,2]{1,0} dynamic-update-slice(%w0, %w1, %w2, %w2)
}
)";
  const std::string start =
      "((f32[8,2]{1,0}, f32[1,2]{1,0}, s32[]), f32[8,2]{1,0}, u32[]) "
      "async-start(%stack, %layer, %i), calls=%wrapped";
  CHECK(pairs_of(wrapped + entry(start)) == "");
  CHECK(pairs_of(wrapped + entry(start + ", output_to_operand_aliasing={{1}: (0, {})}")) ==
        "0{} -> {1}");
}

TEST_CASE("fusions nested deeper than the machine's stack") {
  constexpr int kDeep = 10'000;
  std::string text;
  for (int k = 0; k < kDeep; ++k) {
    const std::string n = std::to_string(k);
    const std::string body = k == 0 ? "dynamic-update-slice(%s0, %l0, %i0, %i0)"
                                    : "fusion(%s" + n + ", %l" + n + ", %i" + n +
                                          "), kind=kLoop, calls=%f" + std::to_string(k - 1);
    text += "%f" + n + " (a: f32[8,2], b: f32[1,2], c: s32[]) -> f32[8,2] {\n  %s" + n +
            " = f32[8,2]{1,0} parameter(0)\n  %l" + n + " = f32[1,2]{1,0} parameter(1)\n  %i" + n +
            " = s32[] parameter(2)\n  ROOT %r" + n + " = f32[8,2]{1,0} " + body + "\n}\n";
  }
  CHECK(pairs_of(text + entry("f32[8,2]{1,0} fusion(%stack, %layer, %i), kind=kLoop, calls=%f" +
                              std::to_string(kDeep - 1))) == "0{} -> {}");
}

}  // namespace
}  // namespace spillway
