// The option --out PLAN.yaml: writes the plan as a file that `verify` and spillway.jax read.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/load_step.h"
#include "sim/planner/anchor.h"
#include "sim/report/step_figures.h"

namespace spillway {

/// Adds the option; the path stays empty where it is not given.
void add_plan_file_option(CLI::App& subcommand, std::string& path);

/// What a loaded step, and the run that it is anchored on, say of where a plan comes from.
PlanFileContext plan_file_context(const StepOptions& options, const LoadedStep& loaded,
                                  const std::optional<Anchor>& anchor);

/// Writes a file that takes the place of one that may be there.
ExitCode write_plan_file(const std::string& path, const PlanFile& plan);

}  // namespace spillway
