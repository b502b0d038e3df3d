// Whether the value of a flag is one that XLA's parser takes.
#pragma once

#include <optional>
#include <string>

#include "model/flags/known_flags.h"
#include "model/flags/read_flags.h"

namespace spillway {

/// What is wrong with the value of a use, as the end of a sentence: "'95%' is no whole number".
/// Empty when nothing is, or when the values are not known to us.
/// Source: xla/tsl/util/command_line_flags.cc, and the parser of 0.12.0.1 asked.
std::optional<std::string> find_value_fault(const KnownFlag& flag, const FlagUse& use);

}  // namespace spillway
