#include "sim/explain/contention.h"

#include <algorithm>

#include "sim/engine/engine.h"

namespace spillway {
namespace {

using engine::ResourceId;
using engine::StepId;

bool contains(const std::vector<StepId>& steps, StepId step) {
  return std::ranges::find(steps, step) != steps.end();
}

class SharerListener : public engine::Listener {
 public:
  SharerListener(const engine::EngineProgram& program, const Target& target)
      : program_(program), target_(target) {}

  std::map<ResourceId, std::vector<Sharer>> sharers() const {
    std::map<ResourceId, std::map<StepId, SimTime>> sums;
    for (const Charge& charge : charges_) sums[charge.resource][charge.step] += charge.time;
    std::map<ResourceId, std::vector<Sharer>> sorted;
    for (const auto& [resource, steps] : sums) {
      for (const auto& [step, time] : steps) sorted[resource].push_back({step, time});
      std::ranges::stable_sort(sorted[resource], std::ranges::greater{}, &Sharer::time);
    }
    return sorted;
  }

  void on_rates_changed(SimTime at, std::span<const engine::RunningTask> running) override {
    close(at);
    open_.clear();
    for (const engine::RunningTask& task : running) {
      if (!task.limit || !contains(target_.starts, task.step)) continue;
      Window window{task.step, *task.limit, {}, at, at};
      for (const engine::RunningTask& other : running)
        if (!contains(target_.starts, other.step) && uses(other.task, *task.limit))
          window.others.push_back(other.step);
      open_.push_back(std::move(window));
    }
  }
  void on_task_finished(const engine::TaskFinished& finished) override {
    if (contains(target_.starts, finished.step)) last_ = finished;
  }
  /// The awaited run ends with the wait, and is the last that has finished.
  void on_waited(const engine::Waited& waited) override {
    if (!contains(target_.waits, waited.step)) return;
    close(waited.to);
    const SimTime begin = std::max(waited.from, last_.started);
    for (const Window& window : windows_) {
      const SimTime from = std::max(window.from, begin);
      if (window.awaited != last_.step || from >= window.to) continue;
      for (const StepId other : window.others)
        charges_.push_back({waited.from, window.limit, other, window.to - from});
    }
  }
  /// What was before is no part of a wait to come.
  void on_step_taken(StepId /*step*/, SimTime /*at*/) override { windows_.clear(); }
  void on_repeated(const engine::Repeated& repeated) override {
    std::map<std::pair<ResourceId, StepId>, SimTime> once;
    for (const Charge& charge : charges_)
      if (charge.at >= repeated.start) once[{charge.resource, charge.step}] += charge.time;
    for (const auto& [who, time] : once)
      charges_.push_back({repeated.start, who.first, who.second, time * repeated.times});
    const SimTime skipped = repeated.period * repeated.times;
    for (Window& window : open_) window.from += skipped;
    windows_.clear();
  }

 private:
  /// A stretch in which nothing changes and a run of the target is held back.
  struct Window {
    StepId awaited;
    ResourceId limit;
    std::vector<StepId> others;
    SimTime from, to;
  };
  struct Charge {
    SimTime at;  ///< when the wait began
    ResourceId resource;
    StepId step;
    SimTime time;
  };

  /// What is open has lasted until `at`, and goes on from there.
  void close(SimTime at) {
    for (Window& window : open_) {
      if (window.from >= at) continue;
      window.to = at;
      windows_.push_back(window);
      window.from = at;
    }
  }

  bool uses(engine::TaskId id, ResourceId resource) const {
    const engine::Task& task = program_.tasks[id];
    for (std::uint32_t k = task.first_demand; k < task.end_demand; ++k)
      if (program_.demands[k].resource == resource && program_.demands[k].amount > 0) return true;
    return false;
  }

  const engine::EngineProgram& program_;
  const Target& target_;
  std::vector<Window> open_, windows_;
  std::vector<Charge> charges_;
  engine::TaskFinished last_{};
};

}  // namespace

std::map<ResourceId, std::vector<Sharer>> find_sharers(const engine::EngineProgram& program,
                                                       const Target& target, bool extend_loops) {
  SharerListener listener(program, target);
  check(engine::run(program, {.extend_loops = extend_loops}, &listener).ok(),
        "a step that ran takes too long");
  return listener.sharers();
}

}  // namespace spillway
