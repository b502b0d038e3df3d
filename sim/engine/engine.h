// The discrete-event engine: runs tasks on streams over shared resources. It knows tasks and units
// of resources; no HLO, no YAML, no printing. The model and its limits: docs/engine.md.
#pragma once

#include "model/base/result.h"
#include "sim/engine/listener.h"
#include "sim/engine/program.h"
#include "sim/engine/result.h"

namespace spillway::engine {

struct EngineOptions {
  /// Whether a loop that repeats itself is extended instead of simulated to its end. The result is
  /// the same to the picosecond; only `effort` and the form of what listeners hear differ.
  bool extend_loops = true;
};

/// Runs a program without a fault (program.h) from time 0 until everything has finished. An error:
/// that is later than kLongestRun.
Result<EngineResult> run(const EngineProgram& program, const EngineOptions& options = {},
                         Listener* listener = nullptr);

}  // namespace spillway::engine
