#include "sim/scale/resize_program.h"

#include <doctest/doctest.h>

#include "tests/sim/scale/resize.h"

namespace spillway {
namespace {

using testing::resized;
using testing::shape_of;
using testing::Wish;

struct Row {
  const char* name;
  const char* instructions;
  std::vector<Wish> wishes;
  const char* expected;  ///< the shape of %out
};

TEST_CASE("what an instruction makes grows with what it is given") {
  const Row rows[] = {
      {"element by element",
       "%x = f32[2,8] parameter(0)\n ROOT %out = f32[2,8] add(%x, %x)\n",
       {{"x", 0, 6}},
       "f32[6,8]"},
      {"a fill takes the size of what it is added to",
       "%x = f32[2,8] parameter(0)\n %zero = f32[] constant(0)\n"
       " %out = f32[2,8] broadcast(%zero), dimensions={}\n ROOT %y = f32[2,8] add(%x, %out)\n",
       {{"x", 0, 6}},
       "f32[6,8]"},
      {"broadcast along a dimension",
       "%x = f32[2] parameter(0)\n ROOT %out = f32[8,2,5] broadcast(%x), dimensions={1}\n",
       {{"x", 0, 6}},
       "f32[8,6,5]"},
      {"transpose",
       "%x = f32[2,8] parameter(0)\n ROOT %out = f32[8,2] transpose(%x), dimensions={1,0}\n",
       {{"x", 0, 6}},
       "f32[8,6]"},
      {"two dimensions become one",
       "%x = f32[2,8,4] parameter(0)\n ROOT %out = f32[16,4] reshape(%x)\n",
       {{"x", 0, 6}},
       "f32[48,4]"},
      {"one becomes two: the slower in memory takes it",
       "%x = f32[16,4] parameter(0)\n ROOT %out = f32[2,8,4] reshape(%x)\n",
       {{"x", 0, 48}},
       "f32[6,8,4]"},
      {"one becomes two: the one as large as what grows in an argument",
       "%t = s32[8] parameter(0)\n %x = f32[16,4] parameter(1)\n"
       " ROOT %out = f32[2,8,4] reshape(%x)\n",
       {{"t", 0, 24}, {"x", 0, 48}},
       "f32[2,24,4]"},
      {"one becomes two, and what stays does not divide it",
       "%x = f32[16,4] parameter(0)\n ROOT %out = f32[2,8,4] reshape(%x)\n",
       {{"x", 0, 12}},
       "f32[3,4,4]"},
      {"a bitcast goes by the order in memory",
       "%x = f32[2,8]{0,1} parameter(0)\n ROOT %out = f32[16]{0} bitcast(%x)\n",
       {{"x", 0, 6}},
       "f32[48]"},
      {"a bitcast that transposes",
       "%x = f32[4,4]{0,1} parameter(0)\n ROOT %out = f32[4,4]{1,0} bitcast(%x)\n",
       {{"x", 0, 12}},
       "f32[4,12]"},
      {"what does not grow is made up of what does not grow",
       "%x = f32[2,32] parameter(0)\n ROOT %out = f32[2,4,8] reshape(%x)\n",
       {{"x", 0, 6}},
       "f32[6,4,8]"},
      {"a product: batch, left and right dimensions",
       "%x = f32[2,8,4] parameter(0)\n %y = f32[2,4,16] parameter(1)\n"
       " ROOT %out = f32[2,8,16] dot(%x, %y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
       "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n",
       {{"x", 0, 6}, {"y", 0, 6}, {"x", 1, 5}},
       "f32[6,5,16]"},
      {"a square of scores grows in both",
       "%x = f32[8,4] parameter(0)\n ROOT %out = f32[8,8] dot(%x, %x), "
       "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
       {{"x", 0, 16}},
       "f32[16,16]"},
      {"cuBLAS names its dimensions as a dot does",
       "%x = f32[8,4] parameter(0)\n %y = f32[4,16] parameter(1)\n"
       " ROOT %out = (f32[8,16], s8[1024]) custom-call(%x, %y), "
       "custom_call_target=\"__cublas$gemm\", backend_config={\"gemm_backend_config\":"
       "{\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
       "\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],"
       "\"rhs_batch_dimensions\":[]}}}\n",
       {{"x", 0, 24}},
       "(f32[24,16], s8[1024])"},
      {"any other library: what is as large as an operand's dimension",
       "%x = f32[2,8,4] parameter(0)\n"
       " ROOT %out = (f32[2,4,8], u8[0]) custom-call(%x), custom_call_target=\"attention\"\n",
       {{"x", 0, 6}},
       "(f32[6,4,8], u8[0])"},
      {"a slice of what stays",
       "%x = f32[2,8] parameter(0)\n ROOT %out = f32[2,4] slice(%x), slice={[0:2], [4:8]}\n",
       {{"x", 0, 6}},
       "f32[6,4]"},
      {"half of what grows",
       "%x = f32[2,8] parameter(0)\n ROOT %out = f32[2,4] slice(%x), slice={[0:2], [4:8]}\n",
       {{"x", 1, 16}},
       "f32[2,8]"},
      {"all but the last token",
       "%x = s32[2,9] parameter(0)\n ROOT %out = s32[2,8] slice(%x), slice={[0:2], [0:8]}\n",
       {{"x", 1, 17}},
       "s32[2,16]"},
      {"put together",
       "%x = f32[2,8] parameter(0)\n %y = f32[2,3] parameter(1)\n"
       " ROOT %out = f32[2,11] concatenate(%x, %y), dimensions={1}\n",
       {{"x", 1, 16}},
       "f32[2,19]"},
      {"padded by as much as before",
       "%x = f32[2,8] parameter(0)\n %zero = f32[] constant(0)\n"
       " ROOT %out = f32[2,11] pad(%x, %zero), padding=0_0x1_2\n",
       {{"x", 0, 6}, {"x", 1, 16}},
       "f32[6,19]"},
      {"one of a stack",
       "%x = f32[4,2,8] parameter(0)\n %i = s32[] parameter(1)\n %zero = s32[] constant(0)\n"
       " ROOT %out = f32[1,2,8] dynamic-slice(%x, %i, %zero, %zero), "
       "dynamic_slice_sizes={1,2,8}\n",
       {{"x", 1, 6}},
       "f32[1,6,8]"},
      {"rows that are looked up",
       "%x = f32[100,8] parameter(0)\n %i = s32[2,3] parameter(1)\n"
       " ROOT %out = f32[2,3,8] gather(%x, %i), offset_dims={2}, collapsed_slice_dims={0}, "
       "start_index_map={0}, index_vector_dim=2, slice_sizes={1,8}\n",
       {{"i", 0, 6}},
       "f32[6,3,8]"},
      {"gathered from four devices",
       "%x = f32[2,8] parameter(0)\n"
       " ROOT %out = f32[8,8] all-gather(%x), dimensions={0}, replica_groups={{0,1,2,3}}\n",
       {{"x", 0, 6}},
       "f32[24,8]"},
      {"attributes and packed elements follow",
       "%x = s4[3,3]{1,0:E(4)} parameter(0)\n ROOT %out = s4[3,3]{1,0:E(4)} copy(%x)\n",
       {{"x", 0, 5}},
       "s4[5,3]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = testing::read_entry(row.instructions);
    const Result<Program> made = resized(program, row.wishes);
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : to_text(made.error())));
    CHECK(shape_of(*made, "out") == row.expected);
  }
}

TEST_CASE("sizes follow values through loops, fusions and async copies") {
  const Program program = testing::toy_program(R"(
%half (p: f32[2,8]) -> f32[2,8] {
  %p = f32[2,8] parameter(0)
  ROOT %twice = f32[2,8] add(%p, %p)
}

%body (state: (s32[], f32[2,8])) -> (s32[], f32[2,8]) {
  %state = (s32[], f32[2,8]) parameter(0)
  %x = f32[2,8] fusion(%state#1), kind=kLoop, calls=%half
  ROOT %next = (s32[], f32[2,8]) tuple(%state#0, %x)
}

%less (state.1: (s32[], f32[2,8])) -> pred[] {
  %state.1 = (s32[], f32[2,8]) parameter(0)
  ROOT %lt = pred[] compare(%state.1#0, %state.1#0), direction=LT
}

ENTRY %main {
  %x0 = f32[2,8] parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[2,8]) tuple(%zero, %x0)
  %loop = (s32[], f32[2,8]) while(%init), condition=%less, body=%body
  %start = (f32[2,8]{1,0:S(5)}, f32[2,8], u32[]) copy-start(%loop#1)
  ROOT %out = f32[2,8]{1,0:S(5)} copy-done(%start)
}
)");
  const Result<Program> made = resized(program, {{"x0", 0, 6}});
  REQUIRE(made.ok());
  for (const char* name : {"p", "twice", "x", "out"}) CHECK(shape_of(*made, name) == "f32[6,8]");
  CHECK(shape_of(*made, "loop") == "(s32[], f32[6,8])");
  const Shape out = (*made)[testing::find_instruction(*made, "out")].shape;
  CHECK(out.space() == MemorySpace::kPinnedHost);
  CHECK(out.bytes() == Bytes(6 * 8 * 4));
}

TEST_CASE("limits of slices are written anew") {
  const Program program = testing::read_entry(
      "%x = f32[2,8] parameter(0)\n %a = f32[2,4] slice(%x), slice={[0:2], [4:8]}\n"
      " %b = f32[2,4] slice(%x), slice={[0:2], [0:4]}\n ROOT %out = f32[2,4] add(%a, %b)\n");
  const Result<Program> made = resized(program, {{"x", 0, 6}, {"x", 1, 16}});
  REQUIRE(made.ok());
  const auto limits = [&](const char* name) {
    const InstructionId id = testing::find_instruction(*made, name);
    return (*made)[id.computation].attribute(id.instruction, "slice").value_or("");
  };
  CHECK(limits("a") == "{[0:6], [8:16]}");
  CHECK(limits("b") == "{[0:6], [0:8]}");
}

TEST_CASE("an array that no memory holds is refused") {
  const Program program = testing::read_entry(" ROOT %x = f32[1000000,1000000] parameter(0)\n");
  CHECK(resized(program, {{"x", 0, 1'000'000'000}}).error().text ==
        "a step of that size has arrays that no memory holds");
}

TEST_CASE("scores that a library never writes follow batch and sequence") {
  const Program program = testing::read_entry(
      "%q = f32[4,8,4,16] parameter(0)\n"
      " ROOT %out = f32[4,8,4,16] custom-call(%q, %q), custom_call_target=\"__cudnn$fmhaSoftmax\", "
      "backend_config={\"cudnn_fmha_backend_config\":{\"intermediate_tensor_shape\":"
      "{\"dimensions\":[\"4\",\"4\",\"8\",\"8\"]},\"seed\":42}}\n");
  const Result<Program> made = resized(program, {{"q", 0, 12}, {"q", 1, 32}});
  REQUIRE(made.ok());
  const InstructionId id = testing::find_instruction(*made, "out");
  CHECK((*made)[id.computation].attribute(id.instruction, "backend_config") ==
        "{\"cudnn_fmha_backend_config\":{\"intermediate_tensor_shape\":{\"dimensions\":"
        "[\"12\",\"4\",\"32\",\"32\"]},\"seed\":42}}");
}

TEST_CASE("what is not touched is shared") {
  const Program program = testing::toy_program(
      "%sum (a: f32[], b: f32[]) -> f32[] {\n %a = f32[] parameter(0)\n %b = f32[] parameter(1)\n"
      " ROOT %add = f32[] add(%a, %b)\n}\n\nENTRY %main {\n %x = f32[2,8] parameter(0)\n"
      " %zero = f32[] constant(0)\n"
      " ROOT %out = f32[8] reduce(%x, %zero), dimensions={0}, to_apply=%sum\n}\n");
  const Result<Program> made = resized(program, {{"x", 0, 6}});
  REQUIRE(made.ok());
  CHECK(shape_of(*made, "out") == "f32[8]");
  CHECK(made->computations[ComputationId(0)] == program.computations[ComputationId(0)]);
  CHECK(made->computations[made->entry] != program.computations[program.entry]);
}

TEST_CASE("a size wanted twice, and differently, is a broken rule, and the first holds") {
  const Program program = testing::read_entry(" ROOT %x = f32[4] parameter(0)\n");
  const DimensionRules rules = find_dimension_rules(program);
  const DimensionId d = rules.dimensions.at(testing::find_instruction(program, "x"), 0, 0);
  const SolvedDimensions solved = solve_dimensions(program, rules, {{d, 8}, {d, 6}}, {});
  CHECK(solved.broken.size() == 1);
  CHECK(solved.sizes[d].size == 8);
}

}  // namespace
}  // namespace spillway
