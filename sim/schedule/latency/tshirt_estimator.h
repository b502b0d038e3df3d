// XLA's T-shirt sizes: what its scheduler goes by on devices that it has no tables for.
#pragma once

#include "sim/schedule/latency_estimator.h"

namespace spillway {

/// Node costs: 1000 for a loop fusion and a custom call, 5000 for an output fusion and a
/// convolution, 0 for what runs nothing, 1 for everything else, matrix products of Triton among it.
/// Latency: 5000 from an async start to its done, whatever is moved; 1 from anything else.
/// Source: ApproximateLatencyEstimator and GpuLatencyEstimator.
class TshirtEstimator : public LatencyEstimator {
 public:
  /// `costly_all_reduce` is xla_gpu_enable_approx_costly_collectives: above 30 MiB an all-reduce
  /// with a start of its own counts four times.
  explicit TshirtEstimator(bool costly_all_reduce = false)
      : costly_all_reduce_(costly_all_reduce) {}

  double node_cost(const Program& program, InstructionId instruction) const override;
  double latency(const Program& program, ComputationId computation, InstructionIndex from,
                 InstructionIndex to) const override;

 private:
  bool costly_all_reduce_ = false;
};

/// Whether `from` starts what `to` may wait for: what XLA takes for an async pair. It does not look
/// whether the two belong together; an edge between them says enough.
bool is_async_pair(const Program& program, ComputationId computation, InstructionIndex from,
                   InstructionIndex to);

/// Whether an instruction moves data between devices beside the main stream: start and done of
/// collectives, sends and receives, in either spelling.
bool is_collective_start_or_done(const Program& program, InstructionId id);

/// The cost that a user set by the frontend attribute latency_metadata (nanoseconds), in
/// microseconds.
std::optional<double> cost_from_metadata(const Computation& computation, InstructionIndex i);

}  // namespace spillway
