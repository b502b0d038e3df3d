// How far the start of a copy may move up, and its wait down, in the order of the steps.
#pragma once

#include <optional>
#include <string>

#include "sim/explain/target.h"
#include "sim/step_neighbours.h"

namespace spillway {

/// The last place in one direction, and why it ends there.
struct Room {
  engine::StepId end;  ///< in front of this step
  std::string limit;   ///< "fusion.3 makes what it reads", "the iteration begins there", …
};

class RoomFinder {
 public:
  RoomFinder(const Program& program, const MemoryAssignment& memory, const LoweredProgram& lowered);

  /// Where the target's start may stand at the earliest.
  Room before(const Target& target) const;
  /// Where its wait may stand at the latest.
  Room behind(const Target& target) const;

  /// The innermost loop around a step.
  std::optional<engine::StepId> loop_around(engine::StepId step) const { return loops_[step]; }
  std::string name(engine::StepId step) const;

 private:
  std::string edge_of(engine::StepId inside, bool begin) const;

  const Program& program_;
  const MemoryAssignment& memory_;
  const LoweredProgram& lowered_;
  StepNeighbours neighbours_;
  IdVector<engine::StepId, std::optional<engine::StepId>> loops_, readers_;
};

}  // namespace spillway
