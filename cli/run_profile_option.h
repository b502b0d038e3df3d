// Options --profile and --measured-step: what a run of the program took, on which what-ifs and
// plans are anchored.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/load_step.h"
#include "model/run/measured_run.h"
#include "sim/planner/anchor.h"

namespace spillway {

/// As the command line has them; empty where not given.
struct RunProfileOptions {
  std::string profile;
  std::string measured_step;
};

void add_run_profile_options(CLI::App& subcommand, RunProfileOptions& options);

/// Reads the profile of a run of the program. An error: no such profile, or one that the cost model
/// made.
Result<MeasuredRun> read_measured_run(const std::string& path, const Program& program);

/// Reads the profile and replays the step with it; empty where none was given. An error: no such
/// profile, one that the cost model made, or one of another program.
Result<std::optional<Anchor>> read_anchor(const RunProfileOptions& options,
                                          const LoadedStep& loaded);

}  // namespace spillway
