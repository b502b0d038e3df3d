// Operands and called computations that an opcode cannot do without. A text that lacks them is no
// HLO; asking for them is checked, so that such a text does not lead astray.
#pragma once

#include "model/program/computation.h"

namespace spillway {

inline Shape operand_shape(const Computation& computation, InstructionIndex i, std::size_t k) {
  const auto operands = computation.operands(i);
  check(k < operands.size(), "an instruction has fewer operands than its opcode needs");
  return computation.shape_of(operands[k]);
}

/// What a fusion fuses, a reduction applies, an async start wraps.
inline ComputationId called_by(const Computation& computation, InstructionIndex i,
                               std::size_t k = 0) {
  const auto called = computation.called(i);
  check(k < called.size(), "an instruction calls fewer computations than its opcode needs");
  return called[k];
}

}  // namespace spillway
