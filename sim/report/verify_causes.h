// Why a compiled program is not what was planned: each cause by itself, in words.
#pragma once

#include "sim/report/verify_report.h"

namespace spillway {

/// Both sides of a plan that was compiled.
struct VerifySides {
  const PlanFile& plan;
  const StepFigures& compiled;
  const ProgramIdentity& identity;         ///< of the compiled program
  const std::vector<PlannedState>& state;  ///< of the compiled program
  std::optional<JaxlibVersion> jaxlib;     ///< that compiled it
};

/// By how much a value that is not where it should be changes what lies at a place.
Bytes change_at(const NotDone& value, Choice place);

/// How much of a state class lies on the host.
Bytes host_of(const std::vector<PlannedState>& state, StateClass kind);

/// Whether the values and the state that are not where they should be account for a difference on
/// the host or over the link to the byte.
bool is_accounted_for(const VerifyReport& report, std::string_view json);

/// What differs, the causes that a user can do something about first. `report` has its figures and
/// what was not done.
std::vector<Cause> find_causes(const VerifyReport& report, const VerifySides& sides);

}  // namespace spillway
