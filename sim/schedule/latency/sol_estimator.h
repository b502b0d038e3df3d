// XLA's speed-of-light estimator: what its scheduler goes by on Hopper and on B200.
#pragma once

#include <memory>

#include "model/hardware/profile.h"
#include "sim/schedule/latency/network_belief.h"
#include "sim/schedule/latency_estimator.h"

namespace spillway {

struct SolOptions {
  NetworkBelief network;
  /// GPUs that XLA takes for one fast domain (partition_size); those of a host where it is 0.
  std::int64_t partition_size = 0;
};

/// Microseconds. Node costs: 1 for starts and dones of collectives; matrix products from XLA's
/// table (matmul_belief.h); loop and input fusions from its kernel model (kernel_model.h); of
/// everything else a hundredth of the T-shirt size, other custom fusions among it.
/// Latency: of a collective, within a domain from XLA's table, here the profile's fit of it, and
/// beyond from an S-curve (network_belief.h); of everything else the T-shirt size. So a copy across
/// the host link takes 5 ms, whatever it moves.
class SolEstimator : public LatencyEstimator {
 public:
  SolEstimator(HardwareProfile profile, SolOptions options);

  double node_cost(const Program& program, InstructionId instruction) const override;
  double latency(const Program& program, ComputationId computation, InstructionIndex from,
                 InstructionIndex to) const override;

 private:
  std::optional<double> collective_time(const Program& program, InstructionId start) const;

  HardwareProfile profile_;
  SolOptions options_;
  std::unique_ptr<LatencyEstimator> rest_;
};

}  // namespace spillway
