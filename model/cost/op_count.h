// How much arithmetic an instruction does, counted as XLA's HloCostAnalysis does: one operation an
// output element, two a multiply-add of a matrix product, transcendentals apart.
//
// Beyond XLA's rules, matrix products and attention that a library computes (cuBLAS, cuDNN) are
// counted from their shapes; they are kept apart from what XLA sees. Left out: bytes (traffic.h)
// and whatever an unknown custom call does.
#pragma once

#include <string_view>

#include "model/base/units.h"
#include "model/program/program.h"

namespace spillway {

struct OpCount {
  Flops vector_flops{};   ///< elementwise operations and reductions, integer ones too
  Flops dot_flops{};      ///< matrix products: dots, convolutions, cuBLAS and cuDNN calls
  Flops library_flops{};  ///< the part of dot_flops inside library calls, which XLA does not count
  Flops transcendentals{};

  /// Fused attention, causal and windowed masks taken into account: a causal mask halves it.
  Flops attention_flops{};
  Flops unmasked_attention_flops{};  ///< the same as if nothing were masked

  /// The type of the operands of the largest matrix product or attention, which decides the peak:
  /// "bf16", "f8e4m3fn", "tf32" for f32 on tensor cores, "f32" at full precision; empty for none.
  std::string_view matrix_type{};
  Flops largest_product{};
  double depth = 0;  ///< elements that one result of the largest product sums; 0 when not known

  OpCount& operator+=(const OpCount& other);
};

/// What one instruction does itself: a fusion all that is fused, a reduction what it applies.
/// Loops, calls, conditionals and async starts do nothing themselves.
OpCount count_ops(const Program& program, InstructionId id);

/// The sum over the instructions of a computation.
OpCount count_ops(const Program& program, ComputationId id);

}  // namespace spillway
