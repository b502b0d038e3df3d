// What the rules say about a program that is written down in a test.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics/diagnostics.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

/// Everything the rules look at; a test changes what it is about.
struct Inspected {
  Program program;
  MemoryAssignment assignment;
  MemoryReport memory;
  ResidualTable residuals;
  DumpFacts dump = {};
  const HardwareProfile* hardware = nullptr;
  const Budget* budget = nullptr;
  std::optional<JaxlibVersion> jaxlib = {};
  std::optional<Bytes> order_cost = {};

  std::vector<Diagnostic> diagnose() const {
    return spillway::diagnose(
        {program, memory, residuals, assignment, dump, hardware, budget, jaxlib, order_cost});
  }
};

inline Inspected inspect(Program program) {
  Inspected found{std::move(program), {}, {}, {}};
  found.assignment = assign_memory(found.program, toy_schedule(found.program));
  found.memory = make_memory_report(found.program, found.assignment);
  found.residuals = find_residuals(found.program, found.assignment, {});
  return found;
}
inline Inspected inspect(const std::string& text, const std::string& header = "") {
  return inspect(toy_program(text, header));
}

/// The diagnostic of that code; empty where the rule is silent.
inline std::optional<Diagnostic> find_diagnostic(const Inspected& inspected,
                                                 std::string_view code) {
  for (Diagnostic& diagnostic : inspected.diagnose())
    if (diagnostic.code == code) return std::move(diagnostic);
  return std::nullopt;
}

/// What a rule found, or "" where it is silent.
inline std::string what_of(const Inspected& inspected, std::string_view code) {
  const auto found = find_diagnostic(inspected, code);
  return found ? found->what : "";
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace spillway::testing
