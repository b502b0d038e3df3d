// The reader of HloProto and HloModuleProto, as XLA dumps them beside HLO text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway::hlo {

/// Whether a file looks like a serialised proto, by its first bytes and its name.
bool looks_like_proto(std::string_view bytes, const std::string& path);

/// Reads one module, in a HloProto or alone, and XLA's buffer assignment where there is one. The
/// program is the one that read_hlo_text makes of the same module's text; it keeps nothing of
/// `bytes`. Errors carry the path, and name the instruction.
Result<Program> read_hlo_proto(std::shared_ptr<const std::string> bytes, const std::string& path);

}  // namespace spillway::hlo
