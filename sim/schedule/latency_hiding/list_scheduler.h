// XLA's latency-hiding scheduler for one computation: list scheduling from the end to the
// beginning.
//
// A node is ready once everything that reads it has been scheduled. Of the ready ones, the best by
// a fixed list of rules is taken (ready_order.h). From behind, the done of a copy begins a window
// that its start ends; what is scheduled in between hides it.
//
//   program order   start   a   b   done   c
//   scheduled         5     4   3    2     1
#pragma once

#include "sim/schedule/latency_hiding/memory_pressure.h"
#include "sim/schedule/latency_hiding/schedule_graph.h"

namespace spillway {

/// XLA's SchedulerConfig, as far as its GPU compiler sets it.
struct LatencyHidingLimits {
  std::int32_t collectives = 1;     ///< xla_gpu_experimental_parallel_collective_overlap_limit
  std::int32_t async_computes = 2;  ///< xla_gpu_experimental_parallel_async_compute_limit
  /// Device memory above half of which it begins to save; empty: it never does.
  std::optional<Bytes> memory = {};
  /// xla_gpu_experimental_collective_start_as_early_as_possible; means something only where more
  /// than one collective may be in flight.
  bool starts_collectives_early = false;
};

/// Scheduling as it goes, for who decides what comes next.
struct ListState {
  ListState(const ScheduleGraph& schedule_graph, const LatencyHidingLimits& overlap_limits,
            const NodeBuffers& node_buffers, MemoryPressure memory_pressure,
            std::vector<std::int64_t> inner_peaks)
      : graph(schedule_graph),
        limits(overlap_limits),
        buffers(node_buffers),
        pressure(std::move(memory_pressure)),
        inner_peak(std::move(inner_peaks)) {}

  const ScheduleGraph& graph;
  const LatencyHidingLimits& limits;
  const NodeBuffers& buffers;  ///< of the graph's nodes
  MemoryPressure pressure;
  std::vector<std::int64_t> inner_peak;  ///< of each node: what it runs needs by itself

  double now = 0;
  std::vector<double> ready_time;          ///< of each node that is ready or scheduled
  std::vector<std::uint32_t> makes_ready;  ///< of each node: how many it alone still holds back
  std::vector<NodeIndex> waiting;          ///< a heap: ready ones whose time has not come
  ResourceCounts free{};                   ///< at the moment
  ResourceCounts wanted{};                 ///< by ready nodes, as XLA counts: loops forever
};

/// What a computation came to.
struct HiddenOrder {
  std::vector<InstructionIndex> order;
  std::int64_t peak = 0;  ///< bytes, as the scheduler counts memory
};

/// Orders the computation `id` bottom-up, as XLA does. `buffers` and `pressure` are those of the
/// program; `order` is what the memory scheduler made of it, `graph` made of both.
HiddenOrder hide_latencies_in(const ScheduleInput& input, const CountedBuffers& buffers,
                              const ProgramPressure& pressure, ComputationId id,
                              const ElementOrder& order, const ScheduleGraph& graph,
                              const LatencyHidingLimits& limits);

}  // namespace spillway
