// XLA's analytical estimator (xla_gpu_enable_analytical_latency_estimator): its kernel model for
// everything.
#pragma once

#include "model/hardware/profile.h"
#include "sim/schedule/latency_estimator.h"

namespace spillway {

/// Microseconds. Node costs: 1 for starts and dones of collectives, the kernel model for everything
/// else (kernel_model.h; matrix products by the rate of the FPUs, without tensor cores). Latency of
/// an async pair: an all-reduce inside a host over NVLink by its ring model; 5 us, the launch of an
/// NCCL kernel, for every other, so that a copy across the host link seems free. 1 everywhere else.
class AnalyticalEstimator : public LatencyEstimator {
 public:
  explicit AnalyticalEstimator(HardwareProfile profile) : profile_(std::move(profile)) {}

  double node_cost(const Program& program, InstructionId instruction) const override;
  double latency(const Program& program, ComputationId computation, InstructionIndex from,
                 InstructionIndex to) const override;

 private:
  HardwareProfile profile_;
};

}  // namespace spillway
