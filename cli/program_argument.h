// The argument PROGRAM that most commands begin with.
#pragma once

#include <string>

#include "cli/command.h"

namespace spillway {

void add_program_argument(CLI::App& subcommand, std::string& path);

}  // namespace spillway
