// Files that a command writes beside its answer.
#pragma once

#include <string>

#include "cli/command.h"

namespace spillway {

/// Writes a file whole or not at all: what was there before stays until the new one is complete. A
/// file that nobody may write to is left alone; devices and pipes are written into.
/// Returns kDone, or kNotWritten after saying why on stderr.
ExitCode write_output(const std::string& path, const std::string& content);

}  // namespace spillway
