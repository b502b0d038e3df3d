#include "sim/scale/scale_program.h"

#include <doctest/doctest.h>

#include "tests/sim/scale/resize.h"
#include "tests/sim/scale/toy_step.h"

namespace spillway {
namespace {

using testing::shape_of;
using testing::toy_step;
using testing::ToyStep;

/// Every shape of a program, in order.
std::string all_shapes(const Program& program) {
  std::string text;
  for (const auto& computation : program.computations)
    for (const InstructionIndex i : computation->instructions())
      text += to_string((*computation)[i].shape) + "\n";
  return text;
}

struct Row {
  const char* name;
  ToyStep first, second;
  SizeOfDumps sizes;
  double size;
  ToyStep expected;
  Dump from;
  bool beyond;
};

TEST_CASE("a step of another size has the shapes that compiling it would give") {
  const Row rows[] = {
      {"a larger batch",
       {.batch = 2},
       {.batch = 4, .suffix = ".1"},
       {"batch", 2, 4},
       8,
       {.batch = 8},
       Dump::kSecond,
       true},
      {"a batch in between: the nearer one",
       {.batch = 2},
       {.batch = 12},
       {"batch", 2, 12},
       3,
       {.batch = 3},
       Dump::kFirst,
       false},
      {"as near to both: the larger one",
       {.batch = 2},
       {.batch = 8},
       {"batch", 2, 8},
       4,
       {.batch = 4},
       Dump::kSecond,
       false},
      {"the larger one first",
       {.batch = 8},
       {.batch = 2},
       {"batch", 8, 2},
       4,
       {.batch = 4},
       Dump::kFirst,
       false},
      {"a smaller batch",
       {.batch = 2},
       {.batch = 4},
       {"batch", 2, 4},
       1,
       {.batch = 1},
       Dump::kFirst,
       true},
      {"never from a batch of 1, which XLA drops",
       {.batch = 1},
       {.batch = 16},
       {"batch", 1, 16},
       2,
       {.batch = 2},
       Dump::kSecond,
       false},
      {"counted globally",
       {.batch = 2},
       {.batch = 4},
       {"batch", 16, 32},
       48,
       {.batch = 6},
       Dump::kSecond,
       true},
      {"a sequence",
       {.sequence = 8},
       {.sequence = 32},
       {"sequence", 8, 32},
       16,
       {.sequence = 16},
       Dump::kSecond,
       false},
      {"as many tokens as a token is wide",
       {.sequence = 2, .model = 8},
       {.sequence = 4, .model = 8},
       {"sequence", 2, 4},
       8,
       {.sequence = 8, .model = 8},
       Dump::kSecond,
       true},
      {"a workspace on the line through both",
       {.batch = 2, .workspace = 100},
       {.batch = 4, .workspace = 140},
       {"batch", 2, 4},
       8,
       {.batch = 8, .workspace = 220},
       Dump::kSecond,
       true},
      {"one of the two",
       {.batch = 2},
       {.batch = 4},
       {"batch", 2, 4},
       2,
       {.batch = 2},
       Dump::kFirst,
       false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program first = toy_step(row.first), second = toy_step(row.second);
    const auto scaler = ProgramScaler::make(first, second, row.sizes);
    REQUIRE_MESSAGE(scaler.ok(), (scaler.ok() ? "" : to_text(scaler.error())));
    const Result<ScaledProgram> scaled = scaler->at(row.size);
    REQUIRE_MESSAGE(scaled.ok(), (scaled.ok() ? "" : to_text(scaled.error())));
    CHECK(all_shapes(scaled->program) == all_shapes(toy_step(row.expected)));
    CHECK(scaled->from == row.from);
    CHECK(scaled->beyond == row.beyond);
    CHECK(scaled->broken_rules == 0);
  }
}

TEST_CASE("a sequence of tokens may be one longer than the model's") {
  const Program first = toy_step({.sequence = 33}), second = toy_step({.sequence = 65});
  const auto scaler = ProgramScaler::make(first, second, {"sequence", 32, 64});
  REQUIRE(scaler.ok());
  CHECK(all_shapes(scaler->at(128)->program) == all_shapes(toy_step({.sequence = 129})));
}

TEST_CASE("loops that run as often as the sequence has chunks do so at another sequence") {
  const Program first = toy_step({.sequence = 8, .chunk_trips = 2});
  const Program second = toy_step({.sequence = 16, .chunk_trips = 4});
  const auto scaler = ProgramScaler::make(first, second, {"sequence", 8, 16});
  REQUIRE(scaler.ok());
  const auto trips = [](const Program& program) {
    const InstructionId id = testing::find_instruction(program, "loop");
    return known_trip_count(program[id.computation], id.instruction);
  };
  CHECK(trips(scaler->at(32)->program) == 8);
  const Result<ScaledProgram> broken = scaler->at(10);
  REQUIRE(!broken.ok());
  CHECK(broken.error().text == "loop 'loop' would not run a whole number of times at sequence 10");
}

TEST_CASE("what does not grow in a straight line is named") {
  const Program first = toy_step({.sequence = 512}), second = toy_step({.sequence = 1024});
  const auto scaler = ProgramScaler::make(first, second, {"sequence", 512, 1024});
  REQUIRE(scaler.ok());
  const Result<ScaledProgram> scaled = scaler->at(2048);
  REQUIRE(scaled.ok());
  REQUIRE(scaled->bent.size() == 1);
  const BentArrays& scores = scaled->bent[0];
  CHECK(scores.name == "scores");
  CHECK(scores.shape == "f32[2,2048,2048]");
  CHECK(scores.size == Bytes(32 << 20));
  CHECK(scores.straight == Bytes(20 << 20));  // 2 MiB, 8 MiB, then 12 MiB more
}

TEST_CASE("how it does where the truth is known") {
  const Program first = toy_step({.batch = 2}), second = toy_step({.batch = 4, .workspace = 77});
  const auto scaler = ProgramScaler::make(first, second, {"batch", 2, 4});
  REQUIRE(scaler.ok());
  const Result<ScaleCheck> check = scaler->check(Dump::kFirst);
  REQUIRE(check.ok());
  CHECK(check->unlike.empty());  // the workspace too, which is read off the second
  CHECK(check->compared == 16);
  CHECK(all_shapes(check->program) == all_shapes(second));
}

TEST_CASE("two programs that are not one step at two sizes are refused") {
  struct Refusal {
    const char* name;
    ToyStep first, second;
    SizeOfDumps sizes;
    const char* text;
  };
  const Refusal rows[] = {
      {"more arguments",
       {},
       {.batch = 4, .has_bias = true},
       {"batch", 2, 4},
       "toy.hlo: error: is not the same step: it has 4 argument(s), the first program 3\n"
       "  two dumps of one model and policy, that differ in batch"},
      {"another type",
       {},
       {.batch = 4, .type = "bf16"},
       {"batch", 2, 4},
       "toy.hlo: error: argument 1 is bf16[100,4], and f32[100,4] in the first program: not the "
       "same step\n"
       "  two dumps of one model and policy, that differ in batch only"},
      {"the same",
       {},
       {},
       {"batch", 2, 4},
       "toy.hlo: error: has arguments of the same sizes as the first program\n"
       "  two dumps that differ in batch"},
      {"another width",
       {},
       {.batch = 4, .model = 6},
       {"batch", 2, 4},
       "toy.hlo: error: argument 1 is f32[100,6], and f32[100,4] in the first program: the dumps "
       "are of batch 2 and 4, and 4 and 6 do not grow so"},
      {"sizes that are not those of the dumps",
       {},
       {.batch = 4},
       {"batch", 1, 4},
       "toy.hlo: error: argument 0 is s32[4,8], and s32[2,8] in the first program: the dumps are "
       "of batch 1 and 4, and 2 and 4 do not grow so"},
  };
  for (const Refusal& row : rows) {
    CAPTURE(row.name);
    const Program first = toy_step(row.first), second = toy_step(row.second);
    const auto scaler = ProgramScaler::make(first, second, row.sizes);
    REQUIRE(!scaler.ok());
    CHECK(to_text(scaler.error()).substr(0, std::string(row.text).size()) == row.text);
  }
}

TEST_CASE("what a step updates does not grow, even if it would in proportion") {
  const auto updating = [](const std::string& rows) {
    return testing::toy_program(
        "ENTRY %main {\n %w = f32[" + rows + ",3] parameter(0)\n %x = f32[" + rows +
            ",3] parameter(1)\n ROOT %out = f32[" + rows + ",3] add(%w, %x)\n}\n",
        ", input_output_alias={ {}: (0, {}, may-alias) }");
  };
  const Program first = updating("2"), second = updating("4");
  const auto scaler = ProgramScaler::make(first, second, {"batch", 2, 4});
  REQUIRE(!scaler.ok());
  CHECK(scaler.error().text ==
        "argument 0 is f32[4,3], and f32[2,3] in the first program: what a step updates has one "
        "size at any batch");
}

TEST_CASE("a size that does not divide is refused") {
  const Program first = toy_step({.batch = 2}), second = toy_step({.batch = 4});
  const auto scaler = ProgramScaler::make(first, second, {"batch", 16, 32});
  REQUIRE(scaler.ok());
  const Result<ScaledProgram> scaled = scaler->at(20);
  REQUIRE(!scaled.ok());
  CHECK(scaled.error().text ==
        "batch 20 makes dimension 0 of argument 0, s32[2,8], no whole number above 0");
}

}  // namespace
}  // namespace spillway
