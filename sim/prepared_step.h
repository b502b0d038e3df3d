// A step of a program made ready to run on a machine: its costs, streams, and what the engine runs.
// Whoever asks several things about one step, or runs it again with a change, prepares it once.
#pragma once

#include "model/base/result.h"
#include "sim/engine/engine.h"
#include "sim/lowering/lower.h"

namespace spillway {

struct PreparedStep {
  CostTable costs;
  CopyStreams copies = CopyStreams::kDedicated;
  StreamAssignment streams;
  LoweredProgram lowered;
};

/// Prepares a scheduled program whose memory has been assigned. `base` are costs to take over what
/// has not changed from. An error: the engine cannot run it, because a task takes far longer than
/// any does.
Result<PreparedStep> prepare_step(const Program& program, const Schedule& schedule,
                                  const MemoryAssignment& memory, const HardwareProfile& profile,
                                  const Topology& topology, const CostTable* base = nullptr);

/// Runs it. An error: the step takes far longer than any does.
Result<engine::EngineResult> run_step(const Program& program, const PreparedStep& prepared,
                                      const engine::EngineOptions& options = {},
                                      engine::Listener* listener = nullptr);

}  // namespace spillway
