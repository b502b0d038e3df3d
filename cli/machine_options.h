// Options that say on which machine, and how its devices stand: --hw and --topology.
#pragma once

#include <string>

#include "cli/command.h"
#include "model/cost/topology.h"
#include "model/hardware/profile.h"

namespace spillway {

/// As the command line has them.
struct MachineOptions {
  std::string hardware;
  std::string topology;  ///< "hosts x gpus", empty: from the profile
};

/// Whether --hw must be given.
enum class Need { kRequired, kOptional };
void add_machine_options(CLI::App& subcommand, MachineOptions& options,
                         Need need = Need::kRequired);

/// A machine and how the devices of a program stand on it.
struct Machine {
  HardwareProfile profile;
  Topology topology;
};

/// Finds the profile and lays out `devices`. An error: no such machine, a profile that cannot be
/// read, or a topology that is not hosts x GPUs or has another number of devices.
Result<Machine> find_machine(const MachineOptions& options, const Surroundings& surroundings,
                             std::int64_t devices);

}  // namespace spillway
