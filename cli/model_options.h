// A model's configuration in the place of PROGRAM: what it needs besides.
#pragma once

#include <string>

#include "cli/command.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// --devices and --settings.
void add_model_options(CLI::App& subcommand, std::int64_t& devices, std::string& settings);

/// The configuration at `path`. An error of the command line where --devices is missing.
Result<StepSpec> read_model_step(const std::string& path, const std::string& settings,
                                 std::int64_t devices);

}  // namespace spillway
