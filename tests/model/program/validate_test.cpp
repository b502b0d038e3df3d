#include "model/program/validate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::read_module;

/// Computations that the rows below call, and parameters for them.
constexpr const char* kCalled =
    "HloModule toy, is_scheduled=true\n"
    "%add {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, "
    "%y)\n}\n"
    "%one {\n  %p = f32[2] parameter(0)\n  ROOT %n = f32[2] negate(%p)\n}\n"
    "%two {\n  %p = f32[2] parameter(0)\n  %q = s32[] parameter(1)\n  ROOT %n = f32[2] "
    "negate(%p)\n}\n"
    "%body {\n  %p = (f32[2], s32[]) parameter(0)\n"
    "  ROOT %t = (f32[2], s32[]) tuple(%p#0, %p#1)\n}\n"
    "%other_body {\n  %p = (f32[2], s32[]) parameter(0)\n  ROOT %t = (f32[2]) tuple(%p#0)\n}\n"
    "%condition {\n  %p = (f32[2], s32[]) parameter(0)\n"
    "  ROOT %t = pred[] compare(%p#1, %p#1), direction=LT\n}\n"
    "%number {\n  %p = (f32[2], s32[]) parameter(0)\n  ROOT %t = s32[] negate(%p#1)\n}\n"
    "ENTRY %main {\n"
    "  %a = f32[2]{0} parameter(0)\n  %b = f32[3]{0} parameter(1)\n  %i = s32[] parameter(2)\n"
    "  %m = f32[4,8]{1,0} parameter(3)\n  %r = f32[1,8]{1,0} parameter(4)\n"
    "  %t = (f32[2]{0}, s32[]) parameter(5)\n  %z = f32[] parameter(6)\n  %c = pred[] "
    "parameter(7)\n"
    "  %q = f32[4,4]{1,0} parameter(8)\n  %w = (f32[2]{0}) parameter(9)\n"
    "  %s = ((f32[2]{0}), f32[2]{0}, u32[]) async-start(%a), calls=%one\n"
    "  ROOT ";

std::string message_of(const std::string& instruction) {
  const Program program = read_module(kCalled + instruction + "\n}\n");
  const auto error = validate(program);
  if (!error) return "";
  CHECK(error->where.line.value_or(0) == std::ranges::count(std::string_view(kCalled), '\n') + 1);
  CHECK(error->where.column.value_or(0) == 9);
  CHECK(error->advice == "the file may be damaged");
  return error->text;
}

TEST_CASE("sound instructions") {
  for (const char* instruction : {
           "%x = f32[2] add(%a, %a)",
           "%x = f32[2] select(%c, %a, %a)",
           "%x = f32[2] clamp(%z, %a, %z)",
           "%x = s32[2] bitcast-convert(%a)",
           "%x = (f32[2], s32[]) copy(%t)",
           "%x = f32[2]{0:S(5)} copy(%a)",
           "%x = f32[1,8] dynamic-slice(%m, %i, %i), dynamic_slice_sizes={1,8}",
           "%x = f32[4,8] dynamic-update-slice(%m, %r, %i, %i)",
           "%x = f32[4] reduce(%m, %z), dimensions={1}, to_apply=%add",
           "%x = (f32[4], f32[4]) reduce(%m, %m, %z, %z), dimensions={1}, to_apply=%add",
           "%x = f32[4,8] reduce-window(%m, %z), window={size=1x8 pad=0_0x7_0}, to_apply=%add",
           "%x = (f32[2]{0:S(5)}, f32[2]{0}, u32[]) copy-start(%a)",
           "%x = f32[2] async-done(%s)",
           "%x = ((f32[2]), f32[2], u32[]) async-update(%s)",
           "%x = ((f32[2]), f32[1], u32[]) slice-start(%a), slice={[0:1]}",
           "%x = (f32[2], f32[16]) all-gather-start(%a), dimensions={0}",
           "%x = ((f32[2], f32[3]), (f32[16], f32[24])) all-gather-start(%a, %b), dimensions={0}",
           "%x = f32[2] fusion(%a, %i), kind=kLoop, calls=%two",
           "%x = (f32[2], s32[]) while(%t), condition=%condition, body=%body",
           "%x = (f32[2], s32[]) while(%t), body=%body, condition=%condition",
           "%x = f32[2] conditional(%i, %a, %a), branch_computations={%one, %one}",
           "%x = f32[2] conditional(%c, %a, %a), false_computation=%one, true_computation=%one",
           "%x = f32[9] frobnicate(%a, %t), calls=%two",
           "%x = () custom-call(), custom_call_target=\"x\"",
           "%x = token[] after-all()",
           "%x = f32[2] map(%a), dimensions={0}, to_apply=%one",
           "%x = f32[4,4] cholesky(%q)",
           "%x = f32[4,8] triangular-solve(%q, %m)",
           "%x = (f32[2], f32[3]) collective-broadcast(%a, %b), replica_groups={{0,1}}",
           "%x = f32[4,8] custom-call(%m, %m), custom_call_target=\"__cudnn$convForward\", "
           "window={size=1}, feature_group_count=1",
       }) {
    CAPTURE(instruction);
    CHECK(message_of(instruction) == "");
  }
}

TEST_CASE("what breaks a rule is named, and what was expected") {
  struct Row {
    std::string instruction;
    std::string expected;
  };
  const Row rows[] = {
      // Numbers of operands.
      {"%x = f32[2] add(%a)", "add 'x' needs 2 operands, and has 1"},
      {"%x = f32[2] negate()", "negate 'x' needs 1 operand, and has 0"},
      {"%x = f32[2] negate(%a, %a)", "negate 'x' needs 1 operand, and has 2"},
      {"%x = f32[2] iota(%a), iota_dimension=0", "iota 'x' needs 0 operands, and has 1"},
      {"%x = f32[4,8] dynamic-update-slice(%m)",
       "dynamic-update-slice 'x' needs at least 2 operands, and has 1"},
      {"%x = f32[4] reduce(%m, %m, %z), dimensions={1}, to_apply=%add",
       "reduce 'x' needs a start value for each array, and has 3 operands"},
      {"%x = f32[4] scatter(%m, %m, %m, %m), to_apply=%add",
       "scatter 'x' needs an update for each array, and has 4 operands"},
      // Shapes of arrays.
      {"%x = f32[2] add(%a, %b)",
       "add 'x' works element by element, but makes f32[2] and operand 1 is f32[3]"},
      {"%x = f32[2] add(%a, %z)",
       "add 'x' works element by element, but makes f32[2] and operand 1 is f32[]"},
      {"%x = f32[2] negate(%t)",
       "negate 'x' needs arrays as operands, and operand 0 is (f32[2], s32[])"},
      {"%x = (f32[2]) negate(%a)", "negate 'x' makes an array, not (f32[2])"},
      {"%x = f32[3] copy(%a)",
       "copy 'x' and its operand must have the same shape; they differ: f32[3] and f32[2]"},
      {"%x = f32[2] bitcast(%t)",
       "bitcast 'x' needs arrays as operands, and operand 0 is (f32[2], s32[])"},
      {"%x = f32[2,8] dynamic-slice(%r, %i, %i), dynamic_slice_sizes={2,8}",
       "dynamic-slice 'x' takes a part, but f32[2,8] is no part of f32[1,8]"},
      {"%x = f32[8] slice(%r), slice={[0:8]}",
       "slice 'x' takes a part, but f32[8] is no part of f32[1,8]"},
      {"%x = f32[1,8] dynamic-slice(%m, %i, %i, %i), dynamic_slice_sizes={1,8}",
       "dynamic-slice 'x' needs a start for each dimension of f32[4,8], and has 3"},
      {"%x = f32[4,8] dynamic-update-slice(%r, %m, %i, %i)",
       "dynamic-update-slice 'x' and its operand must have the same shape; they differ: f32[4,8] "
       "and f32[1,8]"},
      {"%x = f32[1,8] dynamic-update-slice(%r, %m, %i, %i)",
       "dynamic-update-slice 'x' takes a part, but f32[4,8] is no part of f32[1,8]"},
      {"%x = (f32[4]) reduce(%m, %m, %z, %z), dimensions={1}, to_apply=%add",
       "reduce 'x' makes 2 array(s), but its shape is (f32[4])"},
      {"%x = f32[4,8] reduce-window(%m, %z), window={size=8 pad=7_0}, to_apply=%add",
       "reduce-window 'x' needs a window of 2 dimension(s), and has one of 1"},
      {"%x = f32[4,8] reduce-window(%m, %z), to_apply=%add",
       "reduce-window 'x' needs a window of 2 dimension(s), and has one of 0"},
      {"%x = f32[4,8] convolution(%m, %m), window={}, feature_group_count=0",
       "convolution 'x' needs group counts above 0"},
      {"%x = f32[4,8] convolution(%m, %m), window={size=3 stride=0}",
       "convolution 'x' needs a window with stride= above 0"},
      {"%x = f32[2] cholesky(%a)",
       "cholesky 'x' needs arrays of 2 dimension(s) or more as operands, and operand 0 is f32[2]"},
      {"%x = f32[16] all-gather(%a), dimensions={}",
       "all-gather 'x' needs dimensions={…} with one dimension of f32[2]"},
      {"%x = f32[16] all-gather(%a), dimensions={1}",
       "all-gather 'x' needs dimensions={…} with one dimension of f32[2]"},
      {"%x = f32[2] custom-call(%a), custom_call_target=\"__cublas$gemm\"",
       "custom-call 'x' calls \"__cublas$gemm\" with 1 operand(s), not 2 or more"},
      {"%x = () custom-call(%m, %m), custom_call_target=\"__cublas$gemm\"",
       "custom-call 'x' makes nothing"},
      {"%x = f32[] cholesky(%q)",
       "cholesky 'x' and its operand must have the same shape; they differ: f32[] and f32[4,4]"},
      {"%x = f32[] triangular-solve(%q, %m)",
       "triangular-solve 'x' and its operand must have the same shape; they differ: f32[] and "
       "f32[4,8]"},
      {"%x = f32[] reduce-window(%a, %z), window={size=3 pad=1_1}, to_apply=%add",
       "reduce-window 'x' moves a window over f32[2], but makes f32[]"},
      {"%x = f32[4,8] custom-call(%m, %m), custom_call_target=\"__cudnn$convForward\", "
       "feature_group_count=0",
       "custom-call 'x' needs group counts above 0"},
      {"%x = f32[4,8] custom-call(%m, %m), custom_call_target=\"__cudnn$convForward\", "
       "window={size=1x1 lhs_dilate=0x0}",
       "custom-call 'x' needs a window with lhs_dilate= above 0"},
      {"%x = (f32[2]) collective-broadcast(%a, %b), replica_groups={{0,1}}",
       "collective-broadcast 'x' has 2 operand(s), but the shape (f32[2])"},
      {"%x = f32[2] fft(%t), fft_type=FFT, fft_length={2}",
       "fft 'x' needs arrays as operands, and operand 0 is (f32[2], s32[])"},
      {"%x = (f32[2], s32[]) sort(%t), dimensions={0}, to_apply=%add",
       "sort 'x' needs arrays as operands, and operand 0 is (f32[2], s32[])"},
      // Tuples and pairs of start and done.
      {"%x = (f32[2], s32[]) tuple(%t)",
       "tuple 'x' groups 1 operand(s), but its shape is (f32[2], s32[])"},
      {"%x = (f32[2]) tuple(%w)",
       "tuple 'x' and its operand 0 must have the same shape; element 0 differs: f32[2] and "
       "(f32[2])"},
      {"%x = (f32[2]) tuple(%a, %a)", "tuple 'x' groups 2 operand(s), but its shape is (f32[2])"},
      {"%x = f32[2] tuple(%a)", "tuple 'x' groups 1 operand(s), but its shape is f32[2]"},
      {"%x = (f32[2], f32[2]) tuple(%a, %b)",
       "tuple 'x' and its operand 1 must have the same shape; element 1 differs: f32[2] and "
       "f32[3]"},
      {"%x = (f32[2], (f32[2])) tuple(%a, %t)",
       "tuple 'x' and its operand 1 must have the same shape; element 1 differs: (f32[2]) and "
       "(f32[2], s32[])"},
      {"%x = (f32[2], s32[2]) opt-barrier(%t)",
       "opt-barrier 'x' and its operand must have the same shape; they differ at {1}: s32[2] and "
       "s32[]"},
      {"%x = f32[2] copy-start(%a)", "copy-start 'x' has the shape (destination, source, context)"},
      {"%x = (f32[2], f32[3], u32[]) copy-start(%a)",
       "copy-start 'x' and its operand must have the same shape; they differ: f32[3] and f32[2]"},
      {"%x = f32[2] copy-done(%a)",
       "copy-done 'x' ends what a start began, but its operand is f32[2]"},
      {"%x = f32[3] async-done(%s)",
       "async-done 'x' makes element 1 of what its start holds; they differ: f32[3] and f32[2]"},
      {"%x = ((f32[2]), f32[3], u32[]) async-update(%s)",
       "async-update 'x' and its operand must have the same shape; they differ at {1}: f32[3] and "
       "f32[2]"},
      {"%x = ((f32[2]), f32[16]) all-gather-start(%a, %b), dimensions={0}",
       "all-gather-start 'x' has 2 operand(s), but the shape (f32[2])"},
      {"%x = f32[16] all-gather-start(%a), dimensions={0}",
       "all-gather-start 'x' has the shape (operands, results, …)"},
      {"%x = (f32[2], f32[2]) all-reduce-start(%a, %b), to_apply=%add",
       "all-reduce-start 'x' and its operand 1 must have the same shape; element 1 differs: f32[2] "
       "and f32[3]"},
      // Calls.
      {"%x = f32[2] map(%a), dimensions={0}", "map 'x' must name 1 computation(s), and names 0"},
      {"%x = f32[4] reduce(%m, %z), dimensions={1}",
       "reduce 'x' must name 1 computation(s), and names 0"},
      {"%x = f32[2] fusion(%a), kind=kLoop, calls=%two",
       "fusion 'x' hands 1 value(s) to 'two', which has 2 parameter(s)"},
      {"%x = f32[2] fusion(%i, %i), kind=kLoop, calls=%two",
       "fusion 'x' hands a value to parameter 0 of 'two' that is none of its shape; they differ: "
       "s32[] and f32[2]"},
      {"%x = f32[3] fusion(%a), kind=kLoop, calls=%one",
       "fusion 'x' has another shape than 'one' returns; they differ: f32[3] and f32[2]"},
      {"%x = f32[2] call(%a, %a), to_apply=%one",
       "call 'x' hands 2 value(s) to 'one', which has 1 parameter(s)"},
      {"%x = (f32[2], f32[2], u32[]) async-start(%a), calls=%one",
       "async-start 'x' has the shape ((operands), result, …), not (f32[2], f32[2], u32[])"},
      {"%x = ((f32[2], f32[2]), f32[2], u32[]) async-start(%a), calls=%one",
       "async-start 'x' has 1 operand(s), but the shape ((f32[2], f32[2]), f32[2], u32[])"},
      {"%x = ((f32[3]), f32[2], u32[]) async-start(%a), calls=%one",
       "async-start 'x' and its operand 0 must have the same shape; they differ: f32[3] and "
       "f32[2]"},
      {"%x = ((f32[2]), f32[3], u32[]) async-start(%a), calls=%one",
       "async-start 'x' has another shape than 'one' returns; they differ: f32[3] and f32[2]"},
      {"%x = (f32[2]) while(%t), condition=%condition, body=%body",
       "while 'x' and its operand must have the same shape; they differ: (f32[2]) and (f32[2], "
       "s32[])"},
      {"%x = f32[2] while(%a), condition=%condition, body=%one",
       "while 'x' hands a value to parameter 0 of 'condition' that is none of its shape; they "
       "differ: f32[2] and (f32[2], s32[])"},
      {"%x = (f32[2], s32[]) while(%t), condition=%number, body=%body",
       "while 'x' needs a condition that returns pred[], and 'number' returns s32[]"},
      {"%x = (f32[2], s32[]) while(%t), condition=%condition, body=%other_body",
       "while 'x' has another shape than 'other_body' returns; they differ: (f32[2], s32[]) and "
       "(f32[2])"},
      {"%x = (f32[2], s32[]) while(%t), condition=%condition, body=%body, "
       "backend_config={\"known_trip_count\":{\"n\":\"-3\"}}",
       "while 'x' runs -3 time(s)"},
      {"%x = f32[2] conditional(%i, %a), branch_computations={%one, %one}",
       "conditional 'x' needs a selector and an operand for each of 2 branch(es), and has 2"},
      {"%x = f32[2] conditional(%i, %b), branch_computations={%one}",
       "conditional 'x' hands a value to parameter 0 of 'one' that is none of its shape; they "
       "differ: f32[3] and f32[2]"},
      {"%x = f32[2] conditional(%i)", "conditional 'x' names no branches"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    CHECK(message_of(row.instruction) == row.expected);
  }
}

TEST_CASE("the whole message points at the instruction") {
  const Program program = read_module(
      "HloModule toy\n\nENTRY %main {\n  %a = f32[2]{0} parameter(0)\n"
      "  ROOT %x = f32[2]{0} add(%a)\n}\n");
  CHECK(to_text(*validate(program)) ==
        "toy.hlo:5:9: error: add 'x' needs 2 operands, and has 1\n"
        "   5 |   ROOT %x = f32[2]{0} add(%a)\n"
        "     |         ^ the file may be damaged");
}

std::string chain_of_calls(int depth, int calls_each) {
  std::string text = "HloModule toy\n%c0 {\n  ROOT %p = s32[] parameter(0)\n}\n";
  for (int i = 1; i <= depth; ++i) {
    text += "%c" + std::to_string(i) + " {\n  %x0 = s32[] parameter(0)\n";
    for (int k = 1; k <= calls_each; ++k)
      text += "  %x" + std::to_string(k) + " = s32[] call(%x" + std::to_string(k - 1) +
              "), to_apply=%c" + std::to_string(i - 1) + "\n";
    text += "}\n";
  }
  return text +
         "ENTRY %main {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), to_apply=%c" +
         std::to_string(depth) + "\n}\n";
}

TEST_CASE("calls may not nest so deep that later stages cannot follow") {
  CHECK(validate(read_module(chain_of_calls(255, 1))) == std::nullopt);
  const auto error = validate(read_module(chain_of_calls(10000, 1)));
  REQUIRE(error);
  CHECK(error->text == "computation 'c257' nests calls more than 256 deep");
}

TEST_CASE("calls may not multiply without end") {
  CHECK(validate(read_module(chain_of_calls(20, 2))) == std::nullopt);
  const auto error = validate(read_module(chain_of_calls(40, 2)));
  REQUIRE(error);
  CHECK(error->text ==
        "computation 'c25' has more than 100,000,000 instructions with its calls written out");
}

std::string nested_loops(const char* trips) {
  std::string text =
      "HloModule toy\n%c {\n  %p = f32[1000] parameter(0)\n  ROOT %t = pred[] constant(true)\n}\n"
      "%b0 {\n  ROOT %p = f32[1000] parameter(0)\n}\n";
  for (int i = 1; i <= 3; ++i)
    text += "%b" + std::to_string(i) +
            " {\n  %p = f32[1000] parameter(0)\n  ROOT %w = f32[1000] while(%p), condition=%c, "
            "body=%b" +
            std::to_string(i - 1) + ", backend_config={\"known_trip_count\":{\"n\":\"" + trips +
            "\"}}\n}\n";
  return text +
         "ENTRY %main {\n  %p = f32[1000] parameter(0)\n"
         "  ROOT %w = f32[1000] call(%p), to_apply=%b3\n}\n";
}

TEST_CASE("bytes and trips must add up within 64 bits") {
  CHECK(validate(read_module(nested_loops("1000"))) == std::nullopt);
  const auto error = validate(read_module(nested_loops("1000000000000000000")));
  REQUIRE(error);
  CHECK(error->text ==
        "computation 'b2' runs 1e+18 time(s) a step with 1.2e+04 bytes of arrays: more than can be "
        "added up");
}

TEST_CASE("a step ends before simulated time does, however small its instructions are") {
  const auto loop = [](const char* trips) {
    return validate(read_module(
        std::string("HloModule toy\n%c {\n  %p = s32[] parameter(0)\n  ROOT %t = pred[] "
                    "constant(true)\n}\n%b {\n  ROOT %p = s32[] parameter(0)\n}\n"
                    "ENTRY %main {\n  %p = s32[] parameter(0)\n  ROOT %w = s32[] while(%p), "
                    "condition=%c, body=%b, backend_config={\"known_trip_count\":{\"n\":\"") +
        trips + "\"}}\n}\n"));
  };
  CHECK(loop("30000000000") == std::nullopt);  // three instructions a trip
  const auto error = loop("5000000000000");
  REQUIRE(error);
  CHECK(error->text.find("runs 5e+12 time(s) a step") != std::string::npos);
}

TEST_CASE("a result may only take the place of a parameter of its size") {
  const auto donate = [](const char* alias) {
    const Program program = read_module(
        std::string("HloModule toy, input_output_alias={ ") + alias +
        " }\nENTRY %main {\n  %a = f32[2] parameter(0)\n  %t = (f32[3], s32[2]) parameter(1)\n"
        "  %n = s32[2] negate(%t#1)\n  %u = (s32[2]) tuple(%n)\n"
        "  ROOT %r = (f32[2], (s32[2])) tuple(%a, %u)\n}\n");
    const auto error = validate(program);
    return error ? error->text : "";
  };
  CHECK(donate("{0}: (0, {}, may-alias)") == "");
  CHECK(donate("{1,0}: (1, {1}, must-alias)") == "");
  CHECK(donate("{0}: (0, {}), {1,0}: (1, {1})") == "");
  CHECK(donate("{0}: (1, {0}, may-alias)") ==
        "parameter 't' is donated to result {0}, which has another size: f32[3] and f32[2]");
  CHECK(donate("{0}: (0, {}), {1,0}: (0, {})") ==
        "parameter 'a' is donated to two results, the second {1,0}");
  CHECK(donate("{1,0}: (1, {1}), {1,0}: (0, {})") ==
        "result {1,0} takes two parameters over, the second 'a'");
}

}  // namespace
}  // namespace spillway
