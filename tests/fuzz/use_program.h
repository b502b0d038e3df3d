// What every stage behind the readers does with a file: the readers must keep it from harm.
#pragma once

#include <memory>
#include <string>

namespace spillway::testing {

/// Reads `content`, text or proto, as inspect does: reader, validation, and for programs that pass,
/// memory, FLOPs, residuals, diagnostics and both renderings; then costs on the toy machine.
/// Returns whether it was accepted. What must never happen is a crash, a failed check or a hang.
bool use_program(std::shared_ptr<const std::string> content);
/// The same with what is a proto, whatever it looks like.
bool use_proto(std::shared_ptr<const std::string> content);

}  // namespace spillway::testing
