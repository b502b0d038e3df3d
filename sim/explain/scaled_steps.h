// The same steps on a machine, or with work, that is larger or smaller by a factor: to find out how
// much of it would be needed.
#pragma once

#include <vector>

#include "sim/lowering/lower.h"

namespace spillway {

/// A host link `factor` times as fast: each way, both ways together, and the host's memory.
engine::EngineProgram with_faster_link(const LoweredProgram& lowered, double factor);

/// Collectives that take 1 / `factor` of the time and of what they hold as long as they run; the
/// bytes of HBM stay.
engine::EngineProgram with_faster_fabric(const LoweredProgram& lowered, double factor);

/// Kernels of the main stream in [first, end) with `factor` times their work.
engine::EngineProgram with_more_kernels(const LoweredProgram& lowered, engine::StepId first,
                                        engine::StepId end, double factor);

/// These copies at 1 / `factor` of the rate that they have alone, whatever else they leave of the
/// machine; all others as before.
engine::EngineProgram with_slower_copies(const LoweredProgram& lowered,
                                         const std::vector<engine::StepId>& starts, double factor);

}  // namespace spillway
