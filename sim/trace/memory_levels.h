// What lies in HBM and in pinned host memory while the main stream is at each step.
#pragma once

#include "model/memory/assignment.h"
#include "sim/lowering/lower.h"

namespace spillway {

struct MemoryLevel {
  Bytes device, host;
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

struct MemoryLevels {
  IdVector<engine::StepId, MemoryLevel> at_step;  ///< of loops nothing
  MemoryLevel at_end;                             ///< what is returned, and what the caller keeps
};

/// The most that is live at the step's place in the schedule, and at the places of instructions
/// between it and the step before it, which take no time. Branches that are not taken do not count.
MemoryLevels find_memory_levels(const Program& program, const MemoryAssignment& memory,
                                const LoweredProgram& lowered);

}  // namespace spillway
