// XLA's latency-hiding scheduler: the order that a program runs in, made from one that needs little
// memory.
#pragma once

#include "model/memory/assignment.h"
#include "sim/schedule/latency_estimator.h"
#include "sim/schedule/latency_hiding/list_scheduler.h"

namespace spillway {

/// `given` holds the program's values and buffers. `orders` are those of the memory scheduler, of
/// every computation that runs by itself. Computations that hide nothing keep theirs.
Schedule hide_latencies(const Program& program, const Lifetimes& given,
                        const IdVector<ComputationId, ElementOrder>& orders,
                        const LatencyEstimator& estimator, const LatencyHidingLimits& limits);

}  // namespace spillway
