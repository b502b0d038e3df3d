// What XLA gives to Triton to write a kernel for.
#pragma once

#include "model/program/program.h"

namespace spillway {

inline bool is_triton_fusion(const Computation& body, InstructionIndex i) {
  return body[i].opcode == Opcode::kFusion && has_attribute(body, i, "kind", "kCustom");
}

/// A matrix product with what else its kernel computes.
inline bool is_triton_product(const Program& program, const Computation& body, InstructionIndex i) {
  if (!is_triton_fusion(body, i)) return false;
  const Computation& fused = program[body.called(i)[0]];
  for (const InstructionIndex inner : fused.instructions())
    if (fused[inner].opcode == Opcode::kDot) return true;
  return false;
}

}  // namespace spillway
