// What a step holds, moves and takes, as plan files have it: the same function for a planned step
// and for a compiled one, so that the two can be compared figure by figure.
#pragma once

#include "model/plan/plan_file.h"
#include "sim/planner/advice.h"
#include "sim/simulate.h"

namespace spillway {

/// `memory` and `run` are those of `program`, and `residuals` with or without names.
StepFigures make_step_figures(const Program& program, const MemoryAssignment& memory,
                              const SimResult& run, const ResidualTable& residuals);

/// How much of each state class a program has, and has on the host; classes that it has none of are
/// left out.
std::vector<PlannedState> list_state(const Program& program);

/// A policy carried out: the program as it becomes, in its order, and a run of it.
struct StepOfPlan {
  const Program& program;
  const Schedule& schedule;
  const SimResult& run;
};

/// What a plan was made from, and for.
struct PlanFileContext {
  const Program& compiled;
  const Schedule& schedule;  ///< of `compiled`
  const NameList& names;
  std::string hardware;
  std::optional<HostGrid> topology;
  std::optional<JaxlibVersion> jaxlib;
  const Budget& budget;
  std::optional<BytesPerSecond> pageable_copies = {};
  std::optional<std::string> anchored_on = {};  ///< the profile of a run
};

/// `handles` and `policy` are of `compiled`; `flags` are those that the planned step was ordered
/// under.
PlanFile make_plan_file(const PlanFileContext& context, const std::vector<Handle>& handles,
                        const Policy& policy, const FlagSettings& flags, bool fits,
                        const StepOfPlan& planned, const Advice& advice);

}  // namespace spillway
