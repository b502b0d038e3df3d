// What is asked about: a copy or a collective with everything that hands over to the same waits. In
// a loop whose copies are pipelined that is a start in front of the loop and one inside, and waits
// inside and behind it: one operation that runs so and so often, whose numbers are those of all of
// them together.
#pragma once

#include <vector>

#include "sim/engine/result.h"
#include "sim/lowering/lower.h"

namespace spillway {

struct Target {
  engine::StepId start;                ///< of `starts` the one that runs most often
  std::vector<engine::StepId> starts;  ///< in order; for what runs on the main stream, itself
  engine::StepId wait{};               ///< of `waits` the one that is passed most often
  std::vector<engine::StepId> waits;   ///< in order; none for what runs on the main stream
};

/// The operation that `start` is part of.
Target find_target(const LoweredProgram& lowered, const engine::EngineResult& run,
                   engine::StepId start);

/// Time of one step that the main stream waits for it, at all its waits together; what runs on the
/// main stream is exposed as long as it runs.
Seconds exposed_of(const Target& target, const engine::EngineResult& run);

}  // namespace spillway
