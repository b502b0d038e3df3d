// Policies of a plan on machines that differ a little from the plan's: rewritten and packed once,
// then run again and again. XLA's order is that of the planned program, whatever the machine.
#pragma once

#include <string>
#include <vector>

#include "sim/planner/planner.h"

namespace spillway {

/// A policy as a program.
struct PlannedStep {
  PolicyCase outcome;  ///< on the plan's own machine
  Program program;
  MemoryAssignment memory;
};

/// In the order that the plan has: XLA's, or for the compiled policy that of its program. An error:
/// the order is one that cannot be made.
Result<PlannedStep> make_planned_step(const Evaluator& evaluator, const PlanResult& plan,
                                      const PolicyCase& outcome);

/// Policies that the plan has simulated and shows: the best first, then runners-up, baselines and
/// the Pareto list, each once and only such as may be proposed. This is no new search.
std::vector<PolicyCase> shown_policies(const PlanResult& plan);

/// Everything that a policy offloads recomputed, or kept where it cannot be or that is asked; empty
/// where nothing changes.
std::optional<Policy> without_host(const std::vector<Handle>& handles, const Policy& policy,
                                   Choice instead);

/// A machine to run on, with the costs of the compiled program there: measured times are carried
/// over as the model's change.
class OtherMachine {
 public:
  OtherMachine(const Evaluator& evaluator, HardwareProfile profile);

  Result<SimResult> run(const PlannedStep& step) const;

 private:
  const Evaluator& evaluator_;
  HardwareProfile profile_;
  CostTable costs_;
};

/// The machine with its link to the host so many times as fast: each direction, and both at once.
HardwareProfile with_link(HardwareProfile profile, double factor);
/// The same with rates of its own for each direction and no other limit on both together; the
/// host's memory keeps up.
HardwareProfile with_link_rates(HardwareProfile profile, BytesPerSecond out, BytesPerSecond in);
/// Matrix and vector units so many times as fast.
HardwareProfile with_compute(HardwareProfile profile, double factor);
HardwareProfile with_hbm(HardwareProfile profile, double factor);

}  // namespace spillway
