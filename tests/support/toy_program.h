// Small programs for tests: HLO text in, everything a stage needs out.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

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

/// The same for a scheduled module of one entry computation, given its instructions.
inline Program read_entry(const std::string& instructions) {
  return read_module("HloModule toy, is_scheduled=true\n\nENTRY %main {\n" + instructions + "}\n");
}

/// The instruction of that name; the test fails when there is none.
inline InstructionId find_instruction(const Program& program, std::string_view name) {
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      if (program[id][i].name == name) return {id, i};
  FAIL("no instruction " << name);
  return {};
}

}  // namespace spillway::testing
