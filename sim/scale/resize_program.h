// A program with other sizes: every shape, and the attributes that repeat sizes, written anew.
#pragma once

#include <map>

#include "model/base/result.h"
#include "sim/scale/solve_dimensions.h"

namespace spillway {

/// The same instructions, in their order, with the arrays that `sizes` says; `trips` are trip
/// counts of loops that change. XLA's own assignment of memory is dropped. An error: the sizes do
/// not fit together, at an instruction.
Result<Program> resize_program(const Program& program, const DimensionRules& rules,
                               const SolvedDimensions& solved,
                               const std::map<InstructionId, std::int64_t>& trips = {});

}  // namespace spillway
