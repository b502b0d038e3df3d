// What XLA's latency-hiding scheduler knows of one instruction.
#pragma once

#include "model/memory/live_range.h"
#include "sim/schedule/latency_estimator.h"
#include "sim/schedule/latency_hiding/async_operation.h"

namespace spillway {

struct ScheduleNode {
  Operand place;        ///< an instruction {x, 0}, or an element of what it makes
  bool is_nop = false;  ///< scheduled as soon as it can be
  bool is_start = false, is_done = false;  ///< of something that the scheduler hides
  bool reads_done = false;                 ///< so that a done may be next
  bool offloads_slice = false;
  /// In the program, whatever the rest of the rules says. XLA, from behind, calls the first
  /// ForceDelay and the second ForceEarly.
  bool runs_early = false, runs_late = false;
  std::int32_t early_priority = 0;         ///< of those that run early, the largest first
  ResourceSet occupies = 0, releases = 0;  ///< a loop: all that its body does
  ResourceCounts needs{};                  ///< at once, what it calls included
  double cost = 0;
  double async_depth = 0;  ///< most latency on a way from where nothing is needed, of async pairs
  double depth = 0;        ///< the same with costs, of everything

  bool is_element() const { return place.node != 0; }
  InstructionIndex instruction() const { return place.instruction; }
};

/// What the graph of a computation is made of, of a whole program.
struct ScheduleInput {
  const Program& program;
  const ValueTable& values;
  const Liveness& liveness;
  const LatencyEstimator& estimator;
};

/// Says of an instruction all that does not depend on others of its computation. `needs_of` says of
/// each computation that runs by itself how much of each resource it takes at once.
void describe_instruction(const ScheduleInput& input, ComputationId id,
                          const IdVector<ComputationId, ResourceCounts>& needs_of,
                          ScheduleNode& node);

}  // namespace spillway
