#include "cli/plan_file_option.h"

#include <CLI/CLI.hpp>

#include "cli/output_file.h"
#include "model/plan/write_plan_file.h"

namespace spillway {

void add_plan_file_option(CLI::App& subcommand, std::string& path) {
  subcommand.add_option("--out", path,
                        "also write the plan as YAML, for verify and for spillway.jax.policy");
}

PlanFileContext plan_file_context(const StepOptions& options, const LoadedStep& loaded,
                                  const std::optional<Anchor>& anchor) {
  std::optional<HostGrid> grid;
  const Topology& topology = loaded.machine.topology;
  if (!options.machine.topology.empty())
    grid = HostGrid{topology.devices / topology.gpus_per_host, topology.gpus_per_host};
  return {.compiled = loaded.program,
          .schedule = loaded.schedule,
          .names = loaded.names,
          .hardware = loaded.machine.profile.id,
          .topology = grid,
          .jaxlib = loaded.jaxlib_or_that_of_names(),
          .budget = loaded.budget,
          .pageable_copies = loaded.pageable_copies,
          .anchored_on = anchor ? std::optional(anchor->path) : std::nullopt};
}

ExitCode write_plan_file(const std::string& path, const PlanFile& plan) {
  return write_output(path, to_yaml(plan));
}

}  // namespace spillway
