// What XLA believes that a matrix product takes: its table of measured products, as fitted.
#pragma once

#include <optional>

#include "model/hardware/profile.h"
#include "model/program/program.h"

namespace spillway {

/// b products of m x k with k x n.
struct MatmulSizes {
  double b = 1, m = 1, n = 1, k = 1;
  std::string_view type;  ///< of the operands, as find_figure() knows it
};

/// Of a dot, of a fusion that Triton makes of one, of a call of cuBLASLt; empty for everything
/// else.
std::optional<MatmulSizes> find_matmul(const Program& program, InstructionId id);

/// Microseconds: flops / rate of a product with sizes within the table, 256 to 4096 and at most
/// four at once. XLA interpolates its table; here the profile's fit of that table stands for it:
///   rate = flops' / gemm_time' (model/cost/gemm_time.h, without gemm_power), of the sizes so
///   limited
/// and gemm_overhead + gemm x flops' / matrix_peak for a profile without shapes.
double believed_matmul(const MatmulSizes& sizes, const HardwareProfile& profile);

}  // namespace spillway
