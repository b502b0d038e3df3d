// What a colleague would point out about a program: what is wrong or surprising, why, and what to
// do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/memory/memory_report.h"
#include "model/residuals/residuals.h"

namespace spillway {

enum class Severity { kInfo, kWarning };
std::string_view name_of(Severity severity);

struct Diagnostic {
  std::string code;  ///< stable, for scripts: "host-compute"
  Severity severity = Severity::kInfo;
  std::string message;  ///< what, why, what to do
};

/// What the rules look at.
struct DiagnosisInput {
  const Program& program;
  const MemoryReport& memory;
  const ResidualTable& residuals;
  const MemoryAssignment& assignment;
};

/// Applies every rule of the table in diagnostics.cpp, warnings first.
std::vector<Diagnostic> diagnose(const DiagnosisInput& input);

}  // namespace spillway
