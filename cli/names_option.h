// Option --names: the sidecar that says which tensor is which.
#pragma once

#include <string>

#include "cli/command.h"
#include "model/residuals/names.h"

namespace spillway {

/// Adds the option; the path stays empty where it is not given.
void add_names_option(CLI::App& subcommand, std::string& path);

/// The names in the file; none where the option was not given. An error: no such file, or no
/// sidecar.
Result<NameList> load_names(const std::string& path);

}  // namespace spillway
