#include "cli/machine_options.h"

#include <CLI/CLI.hpp>

namespace spillway {
void add_machine_options(CLI::App& subcommand, MachineOptions& options, Need need) {
  subcommand
      .add_option("--hw", options.hardware, "machine: an id of 'spillway hw list', or a YAML file")
      ->required(need == Need::kRequired);
  subcommand.add_option("--topology", options.topology,
                        "how the devices stand, hosts x GPUs: 32x4");
}

Result<Machine> find_machine(const MachineOptions& options, const Surroundings& surroundings,
                             std::int64_t devices) {
  Result<HardwareProfile> profile = find_profile(options.hardware, surroundings.profiles);
  if (!profile.ok()) return profile.error();
  Machine machine{std::move(profile).value(), {}};
  if (options.topology.empty()) {
    machine.topology = make_topology(devices, machine.profile);
    return machine;
  }
  const std::optional<HostGrid> grid = parse_host_grid(options.topology);
  if (!grid)
    return usage_error("--topology '" + options.topology + "' is not hosts x GPUs",
                       "for example --topology 32x4");
  const Result<Topology> topology = make_topology(devices, machine.profile, *grid);
  if (!topology.ok()) return topology.error();
  machine.topology = *topology;
  return machine;
}

}  // namespace spillway
