// Gradient accumulation: a loop around forward and backward, once for each micro batch, whose trip
// count is how many of them make a step. Another count with the same micro batch is the same body
// run more or less often, over arguments that hold more or fewer micro batches.
#pragma once

#include <optional>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway {

struct AccumulationLoop {
  InstructionId loop;
  std::int64_t steps = 0;  ///< micro batches a step
};

/// The outermost loop that is no part of a differentiated function and runs both one and its
/// transpose, going by the operations that JAX names in metadata; empty when there is none. XLA
/// must know its trip count.
std::optional<AccumulationLoop> find_accumulation_loop(const Program& program);

/// The step with another number of micro batches, each as large as before. An error: there is no
/// such loop, or `steps` is below 1.
Result<Program> with_accumulation(const Program& program, std::int64_t steps);

}  // namespace spillway
