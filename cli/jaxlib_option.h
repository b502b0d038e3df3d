// The option --jaxlib V: which version compiled the program.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "model/base/jaxlib_version.h"
#include "model/base/result.h"

namespace spillway {

void add_jaxlib_option(CLI::App& subcommand, std::string& jaxlib);

/// Empty for empty text.
Result<std::optional<JaxlibVersion>> read_jaxlib(const std::string& text);

}  // namespace spillway
