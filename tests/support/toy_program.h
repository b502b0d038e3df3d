// Programs written down in a few lines, and what stages say about them in words that a table can
// hold.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>

#include "model/hlo/text_reader.h"
#include "model/memory/assignment.h"

namespace spillway::testing {

/// Reads a module, or fails the test with the reader's message.
inline Program read_module(const std::string& text) {
  Result<Program> program =
      hlo::read_hlo_text(std::make_shared<const std::string>(text), "toy.hlo");
  REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : to_text(program.error())));
  return std::move(program).value();
}

/// A scheduled module of these computations; `header` stands behind its name, for example
/// ", input_output_alias={ {}: (0, {}, may-alias) }".
inline Program toy_program(const std::string& computations, const std::string& header = "") {
  return read_module("HloModule toy, is_scheduled=true" + header + "\n\n" + computations);
}

/// A scheduled module of one entry computation, given its instructions; the last one is its root.
inline Program read_entry(const std::string& instructions) {
  return toy_program("ENTRY %main {\n" + instructions + "}\n");
}

/// The instruction of that name, anywhere in the program; the test fails when there is none.
inline InstructionId find_instruction(const Program& program, std::string_view name) {
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      if (program[id][i].name == name) return {id, i};
  FAIL("no instruction " << name);
  return {};
}

/// The order of the text, which is that of execution.
inline Schedule toy_schedule(const Program& program) { return text_schedule(program).value(); }

/// "loop{1} phi": where a value is defined.
inline std::string describe_value(const Program& program, const ValueTable& values, ValueId id) {
  const Position& at = values[id].defined_at;
  const Instruction& in = program[at.instruction];
  std::string text(in.name);
  if (in.shape.is_tuple()) text += path_to_string(in.shape, at.node);
  return text + (values[id].is_phi ? " phi" : "");
}

}  // namespace spillway::testing
