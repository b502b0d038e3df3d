#include "sim/engine/program.h"

#include <algorithm>

namespace spillway::engine {

ResourceId add_resource(EngineProgram& program, std::int64_t capacity) {
  return program.resources.push({.capacity = capacity});
}

ResourceId add_two_sided(EngineProgram& program, std::int64_t capacity) {
  return program.resources.push({.capacity = capacity, .two_sided = true});
}

StreamId add_stream(EngineProgram& program) { return StreamId(program.stream_count++); }

SlotId add_slot(EngineProgram& program) { return SlotId(program.slot_count++); }

TaskId add_task(EngineProgram& program, Task task, std::span<const Demand> demands) {
  task.first_demand = static_cast<std::uint32_t>(program.demands.size());
  program.demands.insert(program.demands.end(), demands.begin(), demands.end());
  task.end_demand = static_cast<std::uint32_t>(program.demands.size());
  return program.tasks.push(task);
}

TaskId add_task(EngineProgram& program, Task task, std::initializer_list<Demand> demands) {
  return add_task(program, task, std::span<const Demand>(demands.begin(), demands.size()));
}

StepId add_run(EngineProgram& program, TaskId task) { return program.steps.push(RunStep{task}); }

StepId add_start(EngineProgram& program, TaskId task, StreamId stream, SlotId slot) {
  return program.steps.push(StartStep{task, stream, slot});
}

StepId add_wait(EngineProgram& program, SlotId slot, std::uint32_t back) {
  return program.steps.push(WaitStep{slot, back});
}

namespace {

std::optional<ProgramFault> fault_of_task(const EngineProgram& program, TaskId id) {
  const auto fault = [&](const char* what) {
    return ProgramFault{{}, id, "task " + std::to_string(id.index) + " " + what};
  };
  const Task& task = program.tasks[id];
  const auto sane = [](SimTime t) { return t >= SimTime(0) && t <= kLongestTask; };
  if (!sane(task.latency)) return fault("has a latency below zero or above 20 hours");
  if (!sane(task.duration)) return fault("has a duration below zero or above 20 hours");
  if (task.weight < 1 || task.weight > kLargestWeight)
    return fault("has a weight outside 1 to 32768");
  if (task.first_demand > task.end_demand || task.end_demand > program.demands.size())
    return fault("has demands outside the list of demands");
  for (std::uint32_t i = task.first_demand; i < task.end_demand; ++i) {
    const Demand& demand = program.demands[i];
    if (!program.resources.contains(demand.resource)) return fault("demands an unknown resource");
    if (demand.amount < 0) return fault("demands less than nothing");
    for (std::uint32_t j = task.first_demand; j < i; ++j)
      if (program.demands[j].resource == demand.resource) return fault("demands a resource twice");
    const double alone = static_cast<double>(demand.amount) * 1e12 /
                         static_cast<double>(program.resources[demand.resource].capacity);
    if (alone > static_cast<double>(kLongestTask.value()))
      return fault("demands what takes above 20 hours");
  }
  return {};
}

/// Walks the steps in order and counts how often each slot has been started. A wait that is valid
/// in the first iteration of its loops is valid in all of them, since counts only grow.
class StepChecker {
 public:
  explicit StepChecker(const EngineProgram& program)
      : program_(program), started_(program.slot_count) {}

  std::optional<ProgramFault> check_steps() {
    for (const StepId id : ids(program_.steps)) {
      close_loops(id);
      if (const char* what = problem(program_.steps[id], id))
        return ProgramFault{id, {}, "step " + std::to_string(id.index) + " " + what};
    }
    return {};
  }

 private:
  struct Starts {
    SlotId slot;
    std::int64_t count = 0;
  };
  struct OpenLoop {
    StepId end;
    std::int64_t trips = 0;
    std::size_t first_starts = 0;
  };
  static constexpr std::int64_t kMany = std::int64_t{1} << 33;  // more than any `back`

  const char* problem(const Step& step, StepId id) {
    if (const auto* run = std::get_if<RunStep>(&step))
      return program_.tasks.contains(run->task) ? nullptr : "runs an unknown task";
    if (const auto* start = std::get_if<StartStep>(&step)) return problem(*start);
    if (const auto* wait = std::get_if<WaitStep>(&step)) return problem(*wait);
    return problem(std::get<LoopStep>(step), id);
  }

  const char* problem(const StartStep& start) {
    if (!program_.tasks.contains(start.task)) return "starts an unknown task";
    if (start.stream.index >= program_.stream_count) return "starts a task on an unknown stream";
    if (start.stream == kMainStream) return "starts a task on the main stream: run it there";
    if (start.slot.index >= program_.slot_count) return "starts an unknown slot";
    if (runs()) {
      starts_.push_back({start.slot, 1});
      started_[start.slot] = std::min(started_[start.slot] + 1, kMany);
    }
    return nullptr;
  }

  const char* problem(const WaitStep& wait) {
    if (wait.slot.index >= program_.slot_count) return "waits for an unknown slot";
    if (wait.back > kFurthestBack) return "waits for an instance too far back";
    if (runs() && started_[wait.slot] <= std::int64_t{wait.back})
      return "waits for an instance of its slot that nothing has started";
    return nullptr;
  }

  const char* problem(const LoopStep& loop, StepId id) {
    if (loop.trips < 0) return "loops less than zero times";
    const StepId last = loops_.empty() ? StepId(program_.steps.size()) : loops_.back().end;
    if (loop.end <= id || loop.end > last) return "loops over steps that are not inside its parent";
    loops_.push_back({loop.end, runs() ? loop.trips : 0, starts_.size()});
    return nullptr;
  }

  bool runs() const { return loops_.empty() || loops_.back().trips > 0; }

  /// What a body started once, it has started `trips` times when its loop is over.
  void close_loops(StepId at) {
    for (; !loops_.empty() && loops_.back().end == at; loops_.pop_back())
      for (std::size_t i = loops_.back().first_starts; i < starts_.size(); ++i) {
        Starts& starts = starts_[i];
        const std::int64_t trips = std::min(loops_.back().trips, kMany);
        const std::int64_t more =
            starts.count >= kMany / trips ? kMany : starts.count * (trips - 1);
        starts.count = std::min(starts.count + more, kMany);
        started_[starts.slot] = std::min(started_[starts.slot] + more, kMany);
      }
  }

  const EngineProgram& program_;
  IdVector<SlotId, std::int64_t> started_;
  std::vector<Starts> starts_;
  std::vector<OpenLoop> loops_;
};

}  // namespace

std::optional<ProgramFault> find_fault(const EngineProgram& program) {
  if (program.stream_count < 1) return ProgramFault{{}, {}, "there is no main stream"};
  if (program.stream_count > kMostStreams)
    return ProgramFault{{}, {}, "there are too many streams"};
  for (const ResourceId id : ids(program.resources))
    if (program.resources[id].capacity <= 0)
      return ProgramFault{{}, {}, "resource " + std::to_string(id.index) + " has no capacity"};
  for (const TaskId id : ids(program.tasks))
    if (auto fault = fault_of_task(program, id)) return fault;
  return StepChecker(program).check_steps();
}

}  // namespace spillway::engine
