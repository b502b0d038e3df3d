#include "tests/sim/engine/reference.h"

#include <algorithm>
#include <limits>
#include <map>

namespace spillway::engine::testing {
namespace {

struct Activity {
  std::size_t step = 0;
  std::uint32_t stream = 0;
  double latency_left = 0;
  double work_left = 0;  // picoseconds at full speed
  double alone = 0;
  double weight = 1;
  double speed = 1;
  std::map<std::uint32_t, double> uses;  // of a resource's capacity, at full speed
  std::map<std::uint32_t, Side> sides;
  bool started = false;
  bool finished = false;
};

Activity activity_of(const EngineProgram& program, TaskId id, std::size_t step, StreamId stream) {
  const Task& task = program.tasks[id];
  Activity a;
  a.step = step;
  a.stream = stream.index;
  a.latency_left = static_cast<double>(task.latency.value());
  a.alone = static_cast<double>(task.duration.value());
  a.weight = task.weight;
  const auto time = [&](const Demand& demand) {
    return static_cast<double>(demand.amount) * 1e12 /
           static_cast<double>(program.resources[demand.resource].capacity);
  };
  for (std::uint32_t i = task.first_demand; i < task.end_demand; ++i) {
    const Demand& demand = program.demands[i];
    const bool free = program.resources[demand.resource].two_sided && demand.side != Side::kBoth;
    a.alone = std::max(a.alone, free ? time(demand) / kFastestSide : time(demand));
  }
  for (std::uint32_t i = task.first_demand; i < task.end_demand; ++i) {
    const Demand& demand = program.demands[i];
    if (demand.amount == 0) continue;
    a.uses[demand.resource.index] = time(demand) / a.alone;
    a.sides[demand.resource.index] = demand.side;
  }
  a.work_left = a.alone;
  return a;
}

/// Takes two-sided resources of which one side is in use out of what the activities use.
void forget_one_sided(std::vector<Activity>& running, const EngineProgram& program) {
  for (const ResourceId id : ids(program.resources)) {
    if (!program.resources[id].two_sided) continue;
    bool one = false, other = false;
    for (const Activity& a : running) {
      if (!a.uses.contains(id.index)) continue;
      one = one || a.sides.at(id.index) != Side::kOther;
      other = other || a.sides.at(id.index) != Side::kOne;
    }
    if (one && other) continue;
    for (Activity& a : running) a.uses.erase(id.index);
  }
}

/// Raises everyone's speed / weight together; whoever is at full speed or uses a resource that is
/// used up stays where it is.
void raise_speeds(std::vector<Activity*>& running, std::size_t resources) {
  std::vector<Activity*> rising = running;
  for (Activity* a : rising) a->speed = 0;
  while (!rising.empty()) {
    std::vector<double> used(resources, 0), growth(resources, 0);
    for (const Activity* a : running)
      for (const auto& [r, use] : a->uses) used[r] += use * a->speed;
    double step = std::numeric_limits<double>::infinity();
    for (const Activity* a : rising) {
      step = std::min(step, (1 - a->speed) / a->weight);
      for (const auto& [r, use] : a->uses) growth[r] += use * a->weight;
    }
    for (std::size_t r = 0; r < resources; ++r)
      if (growth[r] > 0) step = std::min(step, std::max(0.0, 1 - used[r]) / growth[r]);
    for (Activity* a : rising) a->speed += step * a->weight;
    for (std::size_t r = 0; r < resources; ++r) used[r] += step * growth[r];
    std::erase_if(rising, [&](const Activity* a) {
      return a->speed > 1 - 1e-12 || std::ranges::any_of(a->uses, [&](const auto& use) {
               return used[use.first] > 1 - 1e-12;
             });
    });
  }
}

void set_speeds(const std::vector<Activity*>& running, const EngineProgram& program) {
  std::vector<Activity> now;
  for (const Activity* a : running) now.push_back(*a);
  forget_one_sided(now, program);
  std::vector<Activity*> of_now;
  for (Activity& a : now) of_now.push_back(&a);
  raise_speeds(of_now, program.resources.size());
  for (std::size_t i = 0; i < now.size(); ++i) running[i]->speed = now[i].speed;
}

class Reference {
 public:
  explicit Reference(const EngineProgram& program)
      : program_(program), queues_(program.stream_count), instances_(program.slot_count) {
    result_.finished.resize(program.steps.size());
  }

  ReferenceResult run() {
    activities_.reserve(program_.steps.size());
    for (;;) {
      while (take_step()) {
      }
      std::vector<Activity*> started, working;
      for (auto& queue : queues_) {
        std::erase_if(queue, [](const Activity* a) { return a->finished; });
        if (!queue.empty()) started.push_back(queue.front());
      }
      if (started.empty()) break;
      for (Activity* a : started)
        if (a->latency_left <= 0) working.push_back(a);
      set_speeds(working, program_);
      advance(started);
    }
    result_.makespan = now_;
    return std::move(result_);
  }

 private:
  /// Whether the main stream could do something without time passing.
  bool take_step() {
    if (at_ == program_.steps.size()) return false;
    if (running_ && !running_->finished) return false;
    const Step& step = program_.steps[StepId(at_)];
    if (const auto* wait = std::get_if<WaitStep>(&step)) {
      const auto& instances = instances_[wait->slot];
      if (!instances[instances.size() - 1 - wait->back]->finished) return false;
      result_.finished[at_] = now_;
    } else if (const auto* run = std::get_if<RunStep>(&step)) {
      running_ = enqueue(run->task, kMainStream);
    } else if (const auto* start = std::get_if<StartStep>(&step)) {
      instances_[start->slot].push_back(enqueue(start->task, start->stream));
    }
    ++at_;
    return true;
  }

  Activity* enqueue(TaskId task, StreamId stream) {
    activities_.push_back(activity_of(program_, task, at_, stream));
    queues_[stream].push_back(&activities_.back());
    return &activities_.back();
  }

  void advance(const std::vector<Activity*>& started) {
    double step = std::numeric_limits<double>::infinity();
    for (const Activity* a : started)
      step = std::min(step, a->latency_left > 0 ? a->latency_left : a->work_left / a->speed);
    now_ += step;
    for (Activity* a : started) {
      if (a->latency_left > 0) {
        a->latency_left -= step;
        if (a->latency_left < 1e-9) a->latency_left = 0;
      } else {
        a->work_left -= step * a->speed;
      }
      if (a->latency_left <= 0 && a->work_left < 1e-7) {
        a->finished = true;
        result_.finished[a->step] = now_;
      }
    }
  }

  const EngineProgram& program_;
  std::vector<Activity> activities_;
  IdVector<StreamId, std::vector<Activity*>> queues_;
  IdVector<SlotId, std::vector<Activity*>> instances_;
  Activity* running_ = nullptr;
  std::size_t at_ = 0;
  double now_ = 0;
  ReferenceResult result_;
};

}  // namespace

ReferenceResult reference_run(const EngineProgram& program) { return Reference(program).run(); }

}  // namespace spillway::engine::testing
