#include "sim/schedule/relaxed_order.h"

#include <algorithm>
#include <queue>

namespace spillway {
namespace {

/// The steps as they run now, but that an async pair is one step: of those that may run, the first.
StepOrder given_order(const Steps& steps) {
  std::vector<std::size_t> waits_for(steps.size());
  std::priority_queue<std::uint32_t, StepOrder, std::greater<>> ready;
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    waits_for[step] = steps.graph.before[step].size();
    if (waits_for[step] == 0) ready.push(step);
  }
  StepOrder order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::uint32_t next : steps.graph.after[order.back()])
      if (--waits_for[next] == 0) ready.push(next);
  }
  return order;
}

class Relaxer {
 public:
  explicit Relaxer(const Steps& steps) : steps_(steps), place_(steps.size()), rank_(steps.size()) {}

  StepOrder run() {
    order_ = given_order(steps_);
    number();
    bring_forward();
    sort();
    number();
    put_off();
    sort();
    return std::move(order_);
  }

 private:
  /// Every step runs where it stands in the order.
  void number() {
    for (std::uint32_t k = 0; k < order_.size(); ++k) place_[order_[k]] = rank_[order_[k]] = k;
  }
  /// Steps that run at one place run in the order they had.
  void sort() {
    std::ranges::sort(order_, {},
                      [&](std::uint32_t step) { return std::pair(place_[step], rank_[step]); });
  }

  void bring_forward() {
    std::vector<std::uint32_t> last_reader(steps_.arrays.size());
    for (const std::uint32_t step : order_)
      for (const std::uint32_t array : steps_.reads[step]) last_reader[array] = step;
    std::vector<std::uint32_t> read_until(steps_.arrays.size(), 0);  // so far
    for (const std::uint32_t step : order_) {
      std::int64_t saved = -steps_.makes[step];
      std::uint32_t target = 0;
      for (const std::uint32_t before : steps_.graph.before[step])
        target = std::max(target, place_[before]);
      for (const std::uint32_t array : steps_.reads[step]) {
        if (last_reader[array] != step || steps_.arrays[array].lives_out) continue;
        saved += steps_.arrays[array].bytes;
        target = std::max(target, read_until[array]);
      }
      // What makes nothing (a bitcast) goes along, so that it is in nobody's way.
      if (saved > 0 || steps_.makes[step] == 0) place_[step] = target;
      for (const std::uint32_t array : steps_.reads[step])
        read_until[array] = std::max(read_until[array], place_[step]);
    }
  }

  void put_off() {
    constexpr std::uint32_t kNever = ~0u;
    std::vector<std::uint32_t> read_until(steps_.arrays.size(), 0);  // by those that run later
    for (std::size_t k = 0; k < steps_.arrays.size(); ++k)
      if (steps_.arrays[k].lives_out) read_until[k] = kNever;
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      std::uint32_t target = kNever;
      for (const std::uint32_t after : steps_.graph.after[*at])
        target = std::min(target, place_[after]);
      std::int64_t saved = steps_.makes[*at];
      for (const std::uint32_t array : steps_.reads[*at])
        if (read_until[array] < target) saved -= steps_.arrays[array].bytes;
      if (target != kNever && saved >= 0) place_[*at] = target;
      for (const std::uint32_t array : steps_.reads[*at])
        read_until[array] = std::max(read_until[array], place_[*at]);
    }
  }

  const Steps& steps_;
  StepOrder order_;
  std::vector<std::uint32_t> place_;  ///< in `order_`, where each is to run
  std::vector<std::uint32_t> rank_;   ///< where each stands in `order_`
};

}  // namespace

StepOrder relaxed_order(const Steps& steps) { return Relaxer(steps).run(); }

}  // namespace spillway
