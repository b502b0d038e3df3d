// A second engine, slow and obvious, that shares no code with the first: no loops, no integers, no
// incremental state. It tells what the first one should find, up to rounding.
#pragma once

#include "sim/engine/program.h"

namespace spillway::engine::testing {

struct ReferenceResult {
  double makespan = 0;           ///< picoseconds
  std::vector<double> finished;  ///< by step, picoseconds; of a wait: when it was passed
};

/// `program` must be without loops (`unrolled`).
ReferenceResult reference_run(const EngineProgram& program);

}  // namespace spillway::engine::testing
