// Latencies and costs for tests of the scheduler: XLA's T-shirt sizes.
#pragma once

#include "sim/schedule/latency_estimator.h"

namespace spillway::testing {

/// A loop fusion or a custom call costs 1000, an output fusion 5000, what runs nothing 0, the rest
/// 1; an async pair takes 5000.
class FixedEstimator : public LatencyEstimator {
 public:
  double node_cost(const Program& program, InstructionId id) const override {
    const Computation& computation = program[id.computation];
    switch (program[id].opcode) {
      case Opcode::kBitcast:
      case Opcode::kConstant:
      case Opcode::kParameter:
      case Opcode::kTuple:
      case Opcode::kPartitionId:
      case Opcode::kReplicaId:
      case Opcode::kOptimizationBarrier:
        return 0;
      case Opcode::kCustomCall:
        return 1000;
      case Opcode::kFusion:
        if (has_attribute(computation, id.instruction, "kind", "kLoop")) return 1000;
        return has_attribute(computation, id.instruction, "kind", "kOutput") ? 5000 : 1;
      default:
        return 1;
    }
  }

  double latency(const Program& program, ComputationId computation, InstructionIndex from,
                 InstructionIndex to) const override {
    return is_async_start(program[computation][from].opcode) &&
                   is_async_done(program[computation][to].opcode)
               ? 5000
               : 1;
  }
};

}  // namespace spillway::testing
