// The reader of HLO text, optimised or not, as XLA dumps it.
#pragma once

#include <memory>
#include <string>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway::hlo {

/// Reads one module in a single pass. The program keeps `text` alive: names are views into it.
/// Errors carry path, line and column. StableHLO, binary files and cut files are recognised and
/// explained; unknown attributes are kept, unknown opcodes become Opcode::kUnknown.
Result<Program> read_hlo_text(std::shared_ptr<const std::string> text, const std::string& path);

}  // namespace spillway::hlo
