#include "model/program/program.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::read_entry;
using testing::read_module;

TEST_CASE("trip counts that XLA knows") {
  struct Row {
    std::string config;
    std::optional<std::int64_t> expected;
  };
  const Row rows[] = {
      {", "
       "backend_config={\"known_trip_count\":{\"n\":\"126\"},\"known_init_step\":{\"init\":\"7\"}}",
       126},
      {", backend_config={\"x\":\"3\",\"known_trip_count\":{\"n\":126}}", 126},
      {", backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"126\\\"}}\"", 126},
      {", backend_config={\"known_trip_count\":{\"n\":\"99999999999999999999\"}}",
       std::numeric_limits<std::int64_t>::max()},
      {", backend_config={\"known_trip_count\":{\"n\":\"\"}}", std::nullopt},
      {", backend_config={\"known_trip_count\":{\"n\":\"-5\"}}", std::nullopt},
      {", backend_config={\"known_trip_count\":[\"5\"]}", std::nullopt},
      {", backend_config={\"known_trip_count\":{\"n\":\"x\"},\"other\":\"7\"}", std::nullopt},
      {", backend_config={\"known_init_step\":{\"init\":\"7\"}}", std::nullopt},
      {"", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.config);
    const Program program = read_module(
        std::string(
            "HloModule toy\n%c {\n  %p = s32[] parameter(0)\n"
            "  ROOT %t = pred[] constant(true)\n}\n%b {\n  ROOT %p = s32[] parameter(0)\n}\n"
            "ENTRY %main {\n  %p = s32[] parameter(0)\n"
            "  ROOT %w = s32[] while(%p), condition=%c, body=%b") +
        row.config + "\n}\n");
    CHECK(known_trip_count(program.entry_computation(), InstructionIndex(1)) == row.expected);
  }
}

TEST_CASE("the source line of an instruction") {
  SUBCASE("in its metadata") {
    const Program program = read_entry(
        "  a = f32[] parameter(0), metadata={source_file=\"/x/step.py\" source_line=12}\n");
    CHECK(source_line(program, find_instruction(program, "a")) == "/x/step.py:12");
  }
  SUBCASE("in tables") {
    const Program program = read_module(
        "HloModule toy\n\n"
        "FileNames\n1 \"a.py\"\n2 \"b.py\"\n\nFunctionNames\n1 \"f\"\n\n"
        "FileLocations\n1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=2 "
        "end_column=9}\n"
        "2 {file_name_id=2 function_name_id=1 line=7}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 "
        "parent_frame_id=1}\n"
        "3 {file_location_id=9 parent_frame_id=1}\n\n"
        "ENTRY %main {\n"
        "  %a = f32[] parameter(0), metadata={op_name=\"x\" stack_frame_id=2}\n"
        "  %b = f32[] negate(%a), metadata={stack_frame_id=1}\n"
        "  %c = f32[] negate(%a), metadata={stack_frame_id=3}\n"
        "  %d = f32[] negate(%a), metadata={stack_frame_id=4}\n"
        "  %e = f32[] negate(%a), metadata={stack_frame_id=0}\n"
        "  %f = f32[] negate(%a)\n}\n");
    CHECK(source_line(program, find_instruction(program, "a")) == "b.py:7");
    CHECK(source_line(program, find_instruction(program, "b")) == "a.py:5");
    for (const char* name : {"c", "d", "e", "f"})
      CHECK(source_line(program, find_instruction(program, name)) == "");
  }
}

TEST_CASE("an error about an instruction stands where its name stands") {
  const Program program = read_entry("  a = f32[] parameter(0)\n  bc = f32[] negate(a)\n");
  const InstructionId id = find_instruction(program, "bc");
  CHECK(to_text(error_at(program, program[id].name, "is odd", "so")) ==
        "toy.hlo:5:3: error: is odd\n"
        "   5 |   bc = f32[] negate(a)\n"
        "     |   ^ so");
  CHECK(to_text(error_at(program, "made elsewhere", "is odd", "so")) ==
        "toy.hlo: error: is odd\n  so");
  Program made_in_memory = program;
  made_in_memory.text = nullptr;
  CHECK(to_text(error_at(made_in_memory, program[id].name, "is odd")) == "toy.hlo: error: is odd");
}

TEST_CASE("counts") {
  const Program program = read_module(
      "HloModule toy, num_partitions=4, replica_count=2\n"
      "%a {\n  ROOT %p = s32[] parameter(0)\n}\n"
      "ENTRY %main {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), to_apply=%a\n}\n");
  CHECK(program.device_count() == 8);
  CHECK(program.instruction_count() == 3);
  CHECK(is_free(program[find_instruction(program, "p")]));
  CHECK_FALSE(is_free(program[find_instruction(program, "c")]));
}

}  // namespace
}  // namespace spillway
