// Files that a command writes beside its answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace spillway {

/// An error where `path` is one of the files that the command reads, by whatever name, link or hard
/// link; empty paths among them are none. To be asked before the work is done.
std::optional<Error> overwrites_input(const std::string& option, const std::string& path,
                                      const std::vector<std::string>& inputs);

/// Writes a file whole or not at all: what was there before stays until the new one is complete. A
/// file that nobody may write to is left alone; devices and pipes are written into.
/// Returns kDone, or kNotWritten after saying why on stderr.
ExitCode write_output(const std::string& path, const std::string& content);

}  // namespace spillway
