// The copies and collectives that the main stream waited for, as lines of text.
#pragma once

#include <string>

#include "sim/simulate.h"

namespace spillway {

/// The `rows` longest, with the reason of each. `program` is the one that was simulated.
std::string exposed_text(const Program& program, const SimResult& run, std::size_t rows);

/// A line for each custom call of which only a lower bound is known.
std::string unknown_text(const SimResult& run);

/// "offload", "reload", "collective", "synchronous collective" or "slice".
std::string_view kind_of(const ExposedWait& wait);

}  // namespace spillway
