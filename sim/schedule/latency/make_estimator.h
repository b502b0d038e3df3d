// The estimator by which XLA's scheduler goes.
#pragma once

#include <memory>
#include <optional>

#include "model/flags/scheduler_choice.h"
#include "model/hardware/profile.h"
#include "model/run/pgle.h"
#include "sim/schedule/latency_estimator.h"

namespace spillway {

/// What an estimator may rest on beside program and machine.
struct EstimatorInput {
  /// GPUs of a fast domain (of xla_gpu_analytical_latency_estimator_options); 0: those of a host.
  std::int64_t partition_size = 0;
  std::optional<ProfiledInstructions> measured{};  ///< of a choice that goes by a profile
};

/// The estimator of a choice that hides latencies, made for a device that is known.
std::unique_ptr<LatencyEstimator> make_estimator(const SchedulerChoice& choice,
                                                 const HardwareProfile& profile,
                                                 EstimatorInput input = {});

}  // namespace spillway
