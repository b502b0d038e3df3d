// Operations of matrix products written in HLO: dot, ragged-dot, scaled-dot and convolution.
#pragma once

#include <span>
#include <string_view>

#include "model/cost/op_count.h"

namespace spillway {

/// flops = 2 x elements of the result x elements it is contracted over. A convolution counts the
/// window positions that lie inside the input. Holds for every dot; a ragged-dot is counted as if
/// its rows were spread evenly over its groups.
OpCount count_matrix_product(const Computation& computation, InstructionIndex i);

/// The same for a convolution whose result is `result`: cuDNN's calls return a workspace besides.
OpCount count_convolution(const Computation& computation, InstructionIndex i, Shape result);

/// flops = 2 x elements of the result x sizes of the dimensions of `left` that are contracted.
Flops product_flops(Shape left, Shape result, std::span<const std::int64_t> contracting);

/// Elements that are summed for one of the result: flops / (2 x elements of the result).
double depth_of(Flops flops, Shape result);

/// The type that decides the matrix peak for operands of these types (OpCount::matrix_type).
std::string_view matrix_type(Shape left, Shape right, bool full_precision);

}  // namespace spillway
