// A step anchored on a run of it: what was measured stands for every instruction that a policy
// leaves as it is, and the model says the rest. How far the anchored step is from the measured one,
// before any policy is compared: what the durations do not hold, gaps and waits, shows there.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/cost/measured_costs.h"
#include "model/memory/flat_schedule.h"
#include "sim/simulate.h"

namespace spillway {

/// What a profile tells of a run.
struct MeasuredDurations {
  std::string path;                ///< of the profile
  MeasuredTimes times;             ///< by the names of the program
  std::optional<Seconds> step;     ///< what the whole step took, where that is known
  std::vector<std::string> notes;  ///< what the profile does not hold, and what that means
};

/// Policies are not ranked where the anchored step is this far from the measured one.
inline constexpr double kMostResidual = 0.10;

struct Anchor {
  std::string path;
  std::optional<Seconds> measured_step;
  Seconds replayed_step;  ///< the program as compiled, in its own order, with what was measured
  Seconds modelled_step;  ///< the same by the model alone
  std::size_t measured = 0, unmeasured = 0;  ///< instructions that run something
  double share_measured = 0;  ///< of their time in a step, the model's for what was not measured
  std::vector<std::string> unmatched;  ///< names of the run that nothing which runs has
  std::vector<std::string> notes;
  /// Base of every program that is made of this one: an instruction that stayed the very same keeps
  /// its measured time, whatever others are called (cost_table.h).
  CostTable costs;

  /// (replayed - measured) / measured; empty where the measured step is not known.
  std::optional<double> residual() const {
    return measured_step ? std::optional(ratio(replayed_step, *measured_step) - 1) : std::nullopt;
  }
  bool ranks() const { return residual() && std::abs(*residual()) <= kMostResidual; }
};

/// An error: nothing that the program runs was measured, or the step cannot be simulated.
Result<Anchor> make_anchor(const Program& program, const Schedule& schedule,
                           const HardwareProfile& profile, const Topology& topology,
                           std::optional<CopyStreams> copy_streams, MeasuredDurations run);

}  // namespace spillway
