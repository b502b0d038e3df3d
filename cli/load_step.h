// What the commands that run a step begin with: its program and schedule, its names, the machine,
// and what may be used of it. Answers nothing itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/budget_options.h"
#include "cli/command.h"
#include "cli/machine_options.h"
#include "model/base/jaxlib_version.h"
#include "model/memory/flat_schedule.h"
#include "model/program/program.h"
#include "model/residuals/names.h"
#include "model/spec/step_spec.h"
#include "sim/lowering/device_streams.h"

namespace spillway {

/// As the command line has them. What a command has no option for stays empty.
struct StepOptions {
  std::string program;
  std::string names;
  MachineOptions machine;
  BudgetOptions budget;
  std::string jaxlib;
  std::int64_t devices = 0;     ///< of a model's configuration; 0: not said
  std::string settings;         ///< the run's, beside a config.json
  std::string pageable_copies;  ///< their rate; empty: memory is pinned, as XLA's is
};

/// PROGRAM, --hw, --topology, --names, --devices, --settings and --pageable-copies. A command adds
/// --jaxlib itself, since its meaning differs, and the budget's options where it has a budget.
void add_step_options(CLI::App& subcommand, StepOptions& options);

struct LoadedStep {
  Program program;
  Schedule schedule;  ///< the order of the program's text
  NameList names;
  Machine machine;
  Budget budget;
  std::optional<JaxlibVersion> jaxlib;  ///< of --jaxlib
  std::vector<std::string> files;       ///< that were read, which nothing may be written over
  std::optional<BytesPerSecond> pageable_copies;  ///< of --pageable-copies
  /// Of a program that was made from a model's configuration.
  std::optional<StepSpec> spec = {};

  /// The version of --jaxlib, else the one that the names came with, where either was given.
  std::optional<JaxlibVersion> jaxlib_or_that_of_names() const {
    return jaxlib ? jaxlib : names.jaxlib;
  }
  /// How host copies of a program get their streams, where that is known.
  std::optional<CopyStreams> copy_streams_of(const Program& of) const {
    return pageable_copies ? CopyStreams::kBlocking
                           : find_copy_streams(jaxlib_or_that_of_names(), of);
  }
};

/// What becomes of a model's configuration: the program with everything saved, which answers for
/// every policy, or the one the configuration asks for.
enum class ModelForm { kEverythingSaved, kAsConfigured };

/// Reads all of it; what is wrong on the command line comes before what is wrong in files.
Result<LoadedStep> load_step(const StepOptions& options, const Surroundings& surroundings,
                             ModelForm form);

}  // namespace spillway
