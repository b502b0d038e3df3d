// FLOPs of a whole program, as a person compares them: those of a step, and those XLA reports.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/op_count.h"

namespace spillway {

/// FLOPs of one execution of a program on one device.
struct ProgramFlops {
  /// Matrix products, loops multiplied by their trip counts. Attention calls are not in it.
  Flops dot_per_step{};
  /// Products, attention (masks taken into account, op_count.h), elementwise operations and
  /// reductions.
  Flops all_per_step{};
  /// What XLA's HloCostAnalysis says of the module: loop bodies once, library calls nothing.
  Flops xla_cost_analysis{};
};

/// A computation that runs by itself, and how often in one execution of the program.
struct Executed {
  ComputationId id;
  std::int64_t runs = 0;  ///< trip counts of the loops around it multiplied, at most 2^63 - 1
};

/// The entry and what runs from it: loops, branches, calls, what async starts wrap. Callers come
/// before what they call. Fusions and the functions of reductions are not among them.
std::vector<Executed> executed_computations(const Program& program);

/// Loops whose trip count XLA does not know count once; multiplicity() in model/program lists them.
ProgramFlops count_flops(const Program& program);

/// The same from `ops` of each executed computation, count_ops(program, id).
ProgramFlops sum_flops(const Program& program, const IdVector<ComputationId, OpCount>& ops);

}  // namespace spillway
