// Option --names: the sidecar that says which tensor is which.
#pragma once

#include <string>

#include "cli/command.h"
#include "model/residuals/names.h"

namespace spillway {

void add_names_option(CLI::App& subcommand, std::string& path);

/// The names in the file; none where the option was not given.
Result<NameList> load_names(const std::string& path);

}  // namespace spillway
