// A diagnostic as a few lines for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "model/diagnostics/diagnostics.h"

namespace spillway {

/// Severity and code, then what was found, why, and what to do:
///   warning  host-compute
///            2 instructions compute on arrays in pinned host memory, first fusion.3.
///            The host runs them, very slowly. …
///            → Do not offload that name; …
std::string to_text(const Diagnostic& diagnostic);

/// Breaks text at blanks into lines of at most `width` characters where words allow, each behind
/// `indent`; ends with a line end. Counts letters, not bytes.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t width = 100);

}  // namespace spillway
