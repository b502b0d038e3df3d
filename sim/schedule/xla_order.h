// The order in which XLA's GPU compiler would run a program: its memory scheduler, then, where it
// is on, memory fencing and latency hiding by the estimator that device and flags choose.
#pragma once

#include "model/hardware/profile.h"
#include "sim/schedule/default_order.h"
#include "sim/schedule/latency/make_estimator.h"
#include "sim/schedule/latency_hiding.h"
#include "sim/schedule/memory_fences.h"

namespace spillway {

struct XlaOrderOptions {
  /// Empty: as XLA chooses for program and device where no flag is set.
  std::optional<SchedulerChoice> scheduler;
  /// Of latency hiding; without a memory limit, XLA's for the profile's HBM is taken, compiled
  /// ahead of time.
  LatencyHidingLimits limits;
  /// xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes; below 0 it is off.
  std::int64_t fencing_threshold = -1;
  std::int32_t fencing_slack = 1;
  EstimatorInput estimator;
};

struct XlaOrder {
  Schedule schedule;
  DefaultScheduler memory_scheduler = DefaultScheduler::kList;
  SchedulerChoice scheduler;
};

/// `given` is the program's memory in an order that is right. `precedences` hold besides what the
/// program says; the memory scheduler does not see them beforehand, since XLA has copies there.
XlaOrder find_xla_order(const Program& program, const Lifetimes& given,
                        const HardwareProfile& profile, const XlaOrderOptions& options = {},
                        const IdVector<ComputationId, std::vector<Precedence>>& precedences = {});

}  // namespace spillway
