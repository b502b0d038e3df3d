// Around a wait or a start: the first step behind it that reads what arrived, and the last one in
// front of it that makes what it sends.
#pragma once

#include <utility>
#include <vector>

#include "sim/lowering/lower.h"

namespace spillway {

/// Both stay within a stretch: steps of one computation that follow one another without a loop. The
/// answer is the end, or the begin, of the stretch where nothing in it reads or makes the value.
/// Indexed once, so that a step with a hundred thousand copies is not walked through for each.
class StepNeighbours {
 public:
  StepNeighbours(const Program& program, const Lifetimes& memory, const LoweredProgram& lowered);

  /// The first step behind `wait` that reads `arrived`, a value of `computation`.
  engine::StepId first_reader(engine::StepId wait, ComputationId computation,
                              ValueId arrived) const;

  /// The step behind the last one in front of `start` that makes an operand of it.
  engine::StepId behind_producer(engine::StepId start) const;

 private:
  /// What runs, but for waits; loops end a stretch.
  bool is_work(engine::StepId step) const;
  bool belongs(engine::StepId step, ComputationId computation) const;

  const Program& program_;
  const Lifetimes& memory_;
  const LoweredProgram& lowered_;
  std::vector<std::pair<ValueId, engine::StepId>> readers_;        ///< in order
  std::vector<std::pair<InstructionId, engine::StepId>> makers_;   ///< in order
  IdVector<engine::StepId, engine::StepId> first_of_, behind_of_;  ///< the stretch of each step
};

}  // namespace spillway
