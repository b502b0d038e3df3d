// How long a matrix product takes, from its sizes: what a roofline with one factor misses for
// products that are small, shallow or deep. Left out: which of m and n is which, sizes that tiles
// do not divide, split-K, and what is fused to the product (it counts with the bytes that it
// moves).
#pragma once

#include "model/cost/cost.h"
#include "model/cost/work.h"
#include "model/hardware/profile.h"

namespace spillway {

/// A time and what decided it.
struct BoundTime {
  Seconds time{};
  Bound bound = Bound::kNone;
};

/// The shape of a type; a type without one takes that of bf16. Null when that has none either.
const GemmShape* find_gemm_shape(const KernelCosts& kernels, std::string_view xla_type);

/// What lasting load costs a product of that type; 1 where the profile does not say.
double gemm_power(const KernelCosts& kernels, std::string_view xla_type);

/// With `arithmetic` = gemm_power x matrix flops / matrix_peak, and figures of the profile (without
/// gemm_power: the time of a product that runs alone and once, as in XLA's tables):
///   time   = overhead + sqrt(work^2 + walk^2 + moving^2)
///   work   = gemm x arithmetic + result x written / hbm_bandwidth
///   walk   = depth x k / 1024                          k: elements summed for one of the result
///   moving = (operands x near + elementwise x far) / hbm_bandwidth
///            near: bytes that L2 holds, all up to its capacity, none from three times that up
///            far:  the others
/// It grows with every size, and never beats the peak: flops / time < matrix_peak / (gemm x
/// gemm_power). Holds for m, n, k from 256 up; below it comes out short. From: fits of XLA's tables
/// of H100, B200 and Rubin; residuals: docs/cost-fit.md
BoundTime gemm_time(const Work& work, Seconds arithmetic, const GemmShape& shape,
                    const HardwareProfile& profile);

}  // namespace spillway
