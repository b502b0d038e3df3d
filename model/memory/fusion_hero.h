// The operation that decides how XLA's GPU compiler walks a fusion: a reduction or a transpose
// behind elementwise steps, else the root itself.
#pragma once

#include <optional>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// One output of a fusion and the operation that gives it its iteration order.
struct FusionRoot {
  InstructionIndex root;
  InstructionIndex hero;
};

struct FusionHeroes {
  std::vector<FusionRoot> roots;
  /// The reduction that the reduction emitter computes before it writes anything else.
  std::optional<InstructionIndex> reduction;
};

/// Holds for loop and input fusions; Triton and library fusions have no heroes, only roots.
FusionHeroes find_heroes(const Program& program, InstructionId fusion);

}  // namespace spillway
