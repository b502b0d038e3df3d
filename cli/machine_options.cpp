#include "cli/machine_options.h"

#include <CLI/CLI.hpp>
#include <charconv>

namespace spillway {
namespace {

Result<HostGrid> parse_grid(const std::string& text) {
  const Error wrong{ErrorKind::kUsage,
                    "--topology '" + text + "' is not hosts x GPUs",
                    {},
                    "",
                    "for example --topology 32x4"};
  const std::size_t x = text.find('x');
  if (x == std::string::npos) return wrong;
  HostGrid grid;
  const auto read = [&text](std::size_t from, std::size_t to, std::int64_t& out) {
    const char* const end = text.data() + to;
    const auto [at, error] = std::from_chars(text.data() + from, end, out);
    return error == std::errc() && at == end && out > 0;
  };
  if (!read(0, x, grid.hosts) || !read(x + 1, text.size(), grid.gpus)) return wrong;
  return grid;
}

}  // namespace

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
  const Result<HostGrid> grid = parse_grid(options.topology);
  if (!grid.ok()) return grid.error();
  const Result<Topology> topology = make_topology(devices, machine.profile, *grid);
  if (!topology.ok()) return topology.error();
  machine.topology = *topology;
  return machine;
}

}  // namespace spillway
