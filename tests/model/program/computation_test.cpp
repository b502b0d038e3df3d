#include "model/program/computation.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::read_entry;
using testing::read_module;

TEST_CASE("who reads a result") {
  const Program program = read_entry(
      "  a = f32[2] parameter(0)\n"
      "  b = f32[2] add(a, a)\n"
      "  c = f32[2] multiply(a, b)\n"
      "  ROOT d = (f32[2], f32[2]) tuple(c, a)\n");
  const Computation& entry = program.entry_computation();
  const auto uses = [&](std::size_t i) {
    std::string text;
    for (const Use& use : entry.uses(InstructionIndex(i)))
      text += std::string(entry[use.user].name) + std::to_string(use.operand_number) + " ";
    return text;
  };
  CHECK(uses(0) == "b0 b1 c0 d1 ");  // users in order of the text, operands in order
  CHECK(uses(1) == "c1 ");
  CHECK(uses(2) == "d0 ");
  CHECK(uses(3) == "");
  CHECK(entry.root() == Operand{InstructionIndex(3), 0});
  CHECK(entry.root_instruction().name == "d");
}

TEST_CASE("parameters by number, whatever their order in the text") {
  const Program program = read_entry(
      "  b = f32[1] parameter(1)\n"
      "  c = f32[2] parameter(2)\n"
      "  a = f32[0] parameter(0)\n");
  const Computation& entry = program.entry_computation();
  REQUIRE(entry.parameters().size() == 3);
  CHECK(entry[entry.parameters()[0]].name == "a");
  CHECK(entry[entry.parameters()[1]].name == "b");
  CHECK(entry[entry.parameters()[2]].name == "c");
  CHECK(parameter_number(entry[InstructionIndex(1)]) == 2);
}

TEST_CASE("a tuple element is an operand's node, not an instruction") {
  const Program program = read_entry(
      "  t = (f32[2], (s32[], bf16[4])) parameter(0)\n"
      "  inner = (s32[], bf16[4]) get-tuple-element(t), index=1\n"
      "  x = bf16[4] get-tuple-element(inner), index=1\n"
      "  y = bf16[4] negate(x)\n"
      "  z = bf16[4] negate(t#1#1)\n"
      "  ROOT r = bf16[4] get-tuple-element(inner), index=1\n");
  const Computation& entry = program.entry_computation();
  CHECK(entry.size() == 3);
  for (const std::size_t i : {1, 2}) {
    const Operand operand = entry.operands(InstructionIndex(i))[0];
    CHECK(operand == Operand{InstructionIndex(0), 4});
    CHECK(to_string(entry.shape_of(operand)) == "bf16[4]");
  }
  CHECK(entry.root() == Operand{InstructionIndex(0), 4});
  CHECK(program.has_explicit_elements);
}

TEST_CASE("attributes and metadata") {
  const Program program = read_entry(
      "  a = f32[2] parameter(0)\n"
      "  b = f32[2] negate(a), kind=kLoop, metadata={op_type=\"neg\" "
      "op_name=\"jit(f)/op_name=2\\\" }/neg\" source_file=\"a b.py\" source_line=42}, x={1,-2}\n");
  const Computation& entry = program.entry_computation();
  const InstructionIndex b(1);
  CHECK(entry.attributes(b).size() == 3);
  CHECK(entry.attribute(b, "kind") == "kLoop");
  CHECK(entry.attribute(b, "kin") == std::nullopt);
  CHECK(has_attribute(entry, b, "kind", "kLoop"));
  CHECK_FALSE(has_attribute(entry, b, "kind", "kInput"));
  CHECK(metadata_field(entry, b, "op_name") == "jit(f)/op_name=2\\\" }/neg");
  CHECK(metadata_text(entry, b, "op_name") == "jit(f)/op_name=2\" }/neg");
  CHECK(metadata_text(entry, b, "name").empty());
  CHECK(metadata_field(entry, b, "op_type") == "neg");
  CHECK(metadata_field(entry, b, "source_file") == "a b.py");
  CHECK(metadata_field(entry, b, "source_line") == "42");
  CHECK(metadata_field(entry, b, "name") == "");
  CHECK(metadata_field(entry, InstructionIndex(0), "op_name") == "");
}

TEST_CASE("lists of integers") {
  using List = std::vector<std::int64_t>;
  CHECK(parse_integers("{0,2}") == List{0, 2});
  CHECK(parse_integers("7") == List{7});
  CHECK(parse_integers("{-1, 10 }") == List{-1, 10});
  CHECK(parse_integers("{}") == List{});
  CHECK(parse_integers("") == List{});
  CHECK(parse_integers("{99999999999999999999}") == List{});
}

TEST_CASE("metadata that is cut short does not lead outside it") {
  for (const char* metadata :
       {"{op_name=\"a\\\" }", "{op_name=}", "{op_name}", "{}", "{op_name=\"a\\\"}\"}"}) {
    CAPTURE(metadata);
    const Program program = read_entry("  a = f32[2] parameter(0), metadata={x=\"\"}\n");
    ComputationParts parts = program.entry_computation().parts();
    parts.attributes[0].value = metadata;
    const auto computation = make_computation(std::move(parts));
    CHECK(metadata_field(*computation, InstructionIndex(0), "op_name").size() <= 12);
  }
}

}  // namespace
}  // namespace spillway
