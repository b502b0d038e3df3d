// How far an anchored step is from the measured one, as the answers that rest on it begin.
#pragma once

#include <string>

#include "sim/planner/anchor.h"

namespace spillway {

/// Lines that say what was measured, and by how much the replayed step misses the measured one.
std::string anchor_text(const Anchor& anchor);

/// Why policies are not ranked; empty where they are.
std::string not_ranked_because(const Anchor& anchor);

/// As JSON text: the value of "anchor".
std::string anchor_json(const Anchor& anchor);

}  // namespace spillway
