// What XLA's latency-hiding scheduler believes things take. It orders by these figures, right or
// wrong; how long a step really takes is model/cost's and the engine's to say.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// Figures are in XLA's own unit, `cycles`: abstract for its T-shirt sizes (a loop fusion is 1000),
/// microseconds for the others. XLA computes them in double, and ties are decided by them: an
/// estimator adds and rounds as XLA does.
///
/// Asked once an instruction and once an edge of the graph while it is made, in no certain order;
/// an estimator keeps no state that a question changes. get-tuple-element is no instruction of a
/// Program: the scheduler takes its cost as 0 without asking.
class LatencyEstimator {
 public:
  virtual ~LatencyEstimator() = default;

  /// How long the instruction keeps the main stream busy. XLA's NodeCost.
  virtual double node_cost(const Program& program, InstructionId instruction) const = 0;

  /// How long after `from` has been issued `to` may run at the earliest, where `to` reads `from` or
  /// must follow it. XLA's GetLatencyBetween: large between an async start and its done, small
  /// everywhere else. Both are of `computation`.
  virtual double latency(const Program& program, ComputationId computation, InstructionIndex from,
                         InstructionIndex to) const = 0;

  /// Cycles that make a microsecond: 1 for all estimators of GPUs.
  virtual double cycles_per_microsecond() const { return 1; }
};

}  // namespace spillway
