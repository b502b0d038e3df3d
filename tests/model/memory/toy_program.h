// Programs written down in a few lines, and what memory analysis says about them in words that a
// table can hold.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>

#include "model/hlo/text_reader.h"
#include "model/memory/assignment.h"

namespace spillway::testing {

/// A scheduled program of HLO text; `header` stands behind the module's name, for example
/// ", input_output_alias={ {}: (0, {}, may-alias) }".
inline Program toy_program(const std::string& computations, const std::string& header = "") {
  const auto text = std::make_shared<const std::string>("HloModule toy, is_scheduled=true" +
                                                        header + "\n\n" + computations);
  Result<Program> program = hlo::read_hlo_text(text, "toy.txt");
  if (!program) FAIL(to_text(program.error()));
  return std::move(program).value();
}

/// An entry computation of these lines; the last one is its root.
inline std::string toy_entry(const std::string& lines) {
  return "ENTRY %main () -> f32[] {\n" + lines + "}\n";
}

/// The instruction of that name, anywhere in the program.
inline InstructionId named(const Program& program, std::string_view name) {
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      if (program[id][i].name == name) return {id, i};
  FAIL("no instruction of that name: " << name);
  return {};
}

/// "loop{1} phi": where a value is defined.
inline std::string describe_value(const Program& program, const ValueTable& values, ValueId id) {
  const Position& at = values[id].defined_at;
  const Instruction& in = program[at.instruction];
  std::string text(in.name);
  if (in.shape.is_tuple()) text += path_to_string(in.shape, at.node);
  return text + (values[id].is_phi ? " phi" : "");
}

/// The order of the text, which is that of execution.
inline Schedule toy_schedule(const Program& program) { return text_schedule(program).value(); }

}  // namespace spillway::testing
