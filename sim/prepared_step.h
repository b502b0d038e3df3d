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
  bool copies_are_known = false;  ///< else the program's text decided
  StreamAssignment streams;
  LoweredProgram lowered;
};

struct PrepareOptions {
  /// Costs of a related program with the same machine and topology, to take over what has not
  /// changed.
  const CostTable* base_costs = nullptr;
  /// How the XLA that compiled the program gives host copies their streams, where that is known;
  /// else its text decides (device_streams.h).
  std::optional<CopyStreams> copy_streams = {};
};

/// Prepares a scheduled program whose memory has been assigned. An error: the engine cannot run it,
/// because a task takes far longer than any does.
Result<PreparedStep> prepare_step(const Program& program, const Schedule& schedule,
                                  const MemoryAssignment& memory, const HardwareProfile& profile,
                                  const Topology& topology, const PrepareOptions& options = {});

/// Runs it. An error: the step takes far longer than any does.
Result<engine::EngineResult> run_step(const Program& program, const PreparedStep& prepared,
                                      const engine::EngineOptions& options = {},
                                      engine::Listener* listener = nullptr);

}  // namespace spillway
