// What XLA's GpuPerformanceModel believes that a fusion takes: the cost model behind its
// speed-of-light and analytical estimators. What kernels really take is model/cost's to say.
#pragma once

#include "model/hardware/profile.h"
#include "model/program/program.h"

namespace spillway {

/// Nanoseconds, in the quarters to which XLA's clock rounds every term.
struct KernelBelief {
  double compute = 0, read = 0, write = 0;
  double time = 0;  ///< of the whole
};

/// time = compute + memory - 0.95 min(compute, memory),  memory = read + write
///   compute   operations / (clock x 2 x min(blocks, SMs) x min(threads, FPUs of an SM))
///   read      of each operand once from HBM, what is read again from a cache that it fits; no
///             faster than the blocks can ask for it, 32 B a clock each
///   write     bytes / HBM bandwidth
/// Operations and bytes are counted as XLA's GpuHloCostAnalysis does: everything inside a fusion as
/// often as its result needs it. Holds for loop and input fusions; launch sizes of reductions and
/// cycles of operations are approximate (docs/schedule.md). No launch overhead is in it.
KernelBelief believed_kernel(const Program& program, InstructionId id, const Device& device);

}  // namespace spillway
