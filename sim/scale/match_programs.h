// Instructions that two compiled programs of one step have in common. XLA numbers its instructions
// differently when sizes differ, and fuses, unrolls and orders differently too; what stays is where
// JAX made them.
#pragma once

#include <utility>
#include <vector>

#include "model/program/program.h"

namespace spillway {

struct ProgramMatch {
  /// Instructions of the one and of the other, with shapes of the same nesting, types and ranks.
  std::vector<std::pair<InstructionId, InstructionId>> instructions;
};

/// From the entry on through loops, calls and fusions: in two computations that match, instructions
/// of the same operation, types, ranks and JAX operation match where both have equally many: those
/// with the most equal dimensions, else in their order. Parameters match by number.
ProgramMatch match_programs(const Program& a, const Program& b);

}  // namespace spillway
