// Tasks as the event loop wants them: how long each takes alone, and which part of each resource it
// then uses. Computed once a run.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/fixed_point.h"
#include "sim/engine/program.h"

namespace spillway::engine {

/// The part of a resource that a task uses while it runs at full speed; above nothing. One side of
/// a two-sided resource may use more than all of it.
struct Load {
  ResourceId resource;
  Fraction use;
  Side side = Side::kBoth;
};

/// A task on this program's machine.
struct TaskCost {
  SimTime latency;
  SimTime alone;  ///< max(duration, amount / capacity of each demand it feels), rounded up
  std::int32_t weight = 1;
  std::uint32_t first_load = 0;
  std::uint32_t end_load = 0;
};

/// use = amount / (alone × capacity), rounded down: what fits exactly never counts as contention.
class TaskTable {
 public:
  /// The program must be without a fault (program.h).
  explicit TaskTable(const EngineProgram& program);

  const TaskCost& operator[](TaskId task) const { return tasks_[task]; }
  std::span<const Load> loads(TaskId task) const {
    const TaskCost& cost = tasks_[task];
    return {loads_.data() + cost.first_load, loads_.data() + cost.end_load};
  }

 private:
  IdVector<TaskId, TaskCost> tasks_;
  std::vector<Load> loads_;
};

}  // namespace spillway::engine
