// From what a user types to a Program: a file of HLO text or a HloProto, packed or not, or a dump
// folder.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway {

/// Reads the program at `path`. A folder is taken for what --xla_dump_to wrote: the optimised
/// module that looks most like the training step is picked, and `Program::path` names the file.
/// Errors carry the file and, where there is one, line and column.
Result<Program> read_program(const std::string& path);

}  // namespace spillway
