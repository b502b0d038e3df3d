// A listener that writes everything down, with repeated iterations written out.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/listener.h"

namespace spillway::engine::testing {

/// One call of a listener. Times are absolute; `numbers` holds what does not move when repeated.
struct Happening {
  enum class Kind : std::uint8_t { kStarted, kFinished, kWaited, kTaken, kRates, kIteration };
  Kind kind = Kind::kStarted;
  std::vector<SimTime> times;
  std::vector<std::int64_t> numbers;

  friend bool operator==(const Happening&, const Happening&) = default;
};

class Timeline : public Listener {
 public:
  std::vector<Happening> happenings;
  std::int64_t repeats = 0;  ///< calls of on_repeated

  void on_task_started(const TaskStarted& e) override {
    add(Happening::Kind::kStarted, {e.ready, e.at}, {e.step.index, e.task.index, e.stream.index});
  }
  void on_task_finished(const TaskFinished& e) override {
    add(Happening::Kind::kFinished, {e.started, e.at},
        {e.step.index, e.task.index, e.stream.index});
  }
  void on_waited(const Waited& e) override {
    add(Happening::Kind::kWaited, {e.from, e.to}, {e.step.index, e.slot.index});
  }
  void on_step_taken(StepId step, SimTime at) override {
    add(Happening::Kind::kTaken, {at}, {step.index});
  }
  void on_rates_changed(SimTime at, std::span<const RunningTask> running) override {
    std::vector<std::int64_t> numbers;
    for (const RunningTask& task : running) {
      numbers.push_back(task.step.index);
      numbers.push_back(static_cast<std::int64_t>(task.speed * 281474976710656.0));
      numbers.push_back(task.limit ? std::int64_t{task.limit->index} : -1);
    }
    add(Happening::Kind::kRates, {at}, std::move(numbers));
  }
  void on_iteration_began(StepId loop, SimTime at) override {
    add(Happening::Kind::kIteration, {at}, {loop.index});
  }
  void on_repeated(const Repeated& repeated) override {
    ++repeats;
    std::size_t first = happenings.size();
    for (std::int64_t left = repeated.iterations; left > 0;) {
      const Happening& earlier = happenings.at(--first);
      if (earlier.kind == Happening::Kind::kIteration && earlier.numbers[0] == repeated.loop.index)
        --left;
    }
    const std::size_t end = happenings.size();
    for (std::int64_t i = 1; i <= repeated.times; ++i)
      for (std::size_t k = first; k < end; ++k) {
        happenings.push_back(happenings[k]);
        for (SimTime& time : happenings.back().times) time += repeated.period * i;
      }
  }

 private:
  void add(Happening::Kind kind, std::vector<SimTime> times, std::vector<std::int64_t> numbers) {
    happenings.push_back({kind, std::move(times), std::move(numbers)});
  }
};

}  // namespace spillway::engine::testing
