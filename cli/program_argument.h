// The argument PROGRAM that most commands begin with.
#pragma once

#include <string>

#include "cli/command.h"

namespace spillway {

/// Adds the argument, which must be given; read_program says what it may be.
void add_program_argument(CLI::App& subcommand, std::string& path);

}  // namespace spillway
