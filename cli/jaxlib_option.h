// The option --jaxlib V: which version compiled the program, or will run it.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "model/base/jaxlib_version.h"
#include "model/base/result.h"

namespace spillway {

/// Adds the option; `help` says whose version it means.
void add_jaxlib_option(
    CLI::App& subcommand, std::string& jaxlib,
    const char* help = "the version that compiled it, for example 0.12.0.1: XLA's rules differ");

/// The version on the command line; else `fallback`, which may be empty. An error: no version, or
/// one that check_version refuses, in every command.
Result<std::optional<JaxlibVersion>> read_jaxlib(const std::string& text,
                                                 const std::optional<JaxlibVersion>& fallback = {});

}  // namespace spillway
