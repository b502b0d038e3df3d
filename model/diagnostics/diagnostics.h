// What a colleague would point out about a program: what is wrong or surprising, why, and what to
// do. The rules stand in tables by subject (rules.h); each looks at one program and says nothing or
// one thing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/jaxlib_version.h"
#include "model/hardware/profile.h"
#include "model/hlo/dump_facts.h"
#include "model/memory/memory_report.h"
#include "model/plan/budget.h"
#include "model/residuals/residuals.h"

namespace spillway {

enum class Severity {
  kInfo,     ///< good to know
  kWarning,  ///< costs memory or time
  kError,    ///< the step computes something wrong, or cannot run
};
std::string_view name_of(Severity severity);

struct Diagnostic {
  std::string code;  ///< stable, for scripts: "host-compute"
  Severity severity = Severity::kInfo;
  std::string what;    ///< what was found, with its size
  std::string why;     ///< what it means, and where it comes from; may be empty
  std::string advice;  ///< what to do; may be empty

  /// The three in one text.
  std::string message() const;
};

/// What the rules look at. What is not given, nothing is said about.
struct DiagnosisInput {
  const Program& program;
  const MemoryReport& memory;
  const ResidualTable& residuals;
  const MemoryAssignment& assignment;
  DumpFacts dump = {};                        ///< what lies beside the program
  const HardwareProfile* hardware = nullptr;  ///< the machine it is meant for
  const Budget* budget = nullptr;             ///< what that machine allows
  std::optional<JaxlibVersion> jaxlib = {};   ///< which compiled it
  /// What the order of execution costs: the device total, less that in an order made for memory.
  std::optional<Bytes> order_cost = {};
};

/// Applies every rule: errors first, then warnings, then what is good to know.
std::vector<Diagnostic> diagnose(const DiagnosisInput& input);

}  // namespace spillway
