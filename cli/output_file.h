// Files that a command writes beside its answer.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace spillway {

/// To be asked before the work is done. Says on stderr why nothing can be written to `path`, and
/// returns the exit code: kWrongUsage where it is one of the files that the command reads, by
/// whatever name, link or hard link; kNotWritten where no file can be made or replaced there. Makes
/// and changes nothing. Empty paths are none.
ExitCode check_output(const std::string& option, const std::string& path,
                      const std::vector<std::string>& inputs);

/// Writes a file whole or not at all: what was there before stays until the new one is complete. A
/// file that nobody may write to is left alone; devices and pipes are written into.
/// Returns kDone, or kNotWritten after saying why on stderr.
ExitCode write_output(const std::string& path, const std::string& content);

}  // namespace spillway
