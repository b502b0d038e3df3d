#include "sim/schedule/memory_scheduler.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "model/memory/memory_report.h"
#include "sim/schedule/relaxed_order.h"
#include "sim/schedule/steps.h"

namespace spillway {
namespace {

/// XLA's ListScheduler: of the steps that could run, the one that frees most, then the one with
/// most users, then the one that was found last. Time grows with n log n.
class ListScheduler {
 public:
  explicit ListScheduler(const Steps& steps)
      : steps_(steps), uses_(steps.arrays.size()), states_(steps.size()) {
    for (std::uint32_t step = 0; step < steps.size(); ++step) {
      states_[step].frees = -steps.makes[step];
      for (const std::uint32_t array : steps.reads[step]) {
        ++uses_[array].count;
        uses_[array].combined ^= step;
      }
    }
  }

  StepOrder run() {
    StepOrder order;
    for (std::uint32_t step = 0; step < steps_.size(); ++step) {
      states_[step].waits_for = steps_.graph.before[step].size();
      if (states_[step].waits_for == 0) make_ready(step);
    }
    while (!ready_.empty()) {
      const Entry next = ready_.top();
      ready_.pop();
      State& state = states_[next.step];
      if (state.ran || next.number != state.entry) continue;  // pushed again since
      state.ran = true;
      order.push_back(next.step);
      finish(next.step);
    }
    check(order.size() == steps_.size(), "a computation's steps wait for one another");
    return order;
  }

 private:
  /// The steps that have yet to read an array.
  struct Uses {
    std::uint32_t count = 0;
    std::uint32_t combined = 0;  ///< exclusive or of their numbers: the last one's when one is left
  };
  struct State {
    std::size_t waits_for = 0;
    std::int64_t frees = 0;  ///< bytes, less those it makes, if it ran next
    std::uint64_t entry = 0;
    bool ready = false, ran = false;
  };
  struct Entry {
    std::int64_t frees = 0;
    std::size_t users = 0;
    std::uint64_t number = 0;
    std::uint32_t step = 0;
    bool operator<(const Entry& other) const {
      return std::tie(frees, users, number) < std::tie(other.frees, other.users, other.number);
    }
  };

  bool frees_last(std::uint32_t array) const {
    return uses_[array].count == 1 && !steps_.arrays[array].lives_out;
  }

  void make_ready(std::uint32_t step) {
    states_[step].ready = true;
    for (const std::uint32_t array : steps_.reads[step])
      if (frees_last(array)) states_[step].frees += steps_.arrays[array].bytes;
    push(step);
  }

  void push(std::uint32_t step) {
    states_[step].entry = ++entries_;
    Entry entry{states_[step].frees, steps_.graph.users[step].size(), entries_, step};
    const Shape shape = steps_.instruction(step).shape;
    if (shape.is_array() && shape.elements() == 1) {  // at once, so that scalars stay together
      entry.frees = std::numeric_limits<std::int64_t>::max();
      entry.users = std::numeric_limits<std::size_t>::max();
    }
    ready_.push(entry);
  }

  void finish(std::uint32_t step) {
    for (const std::uint32_t array : steps_.reads[step]) {
      --uses_[array].count;
      uses_[array].combined ^= step;
      if (!frees_last(array) || !states_[uses_[array].combined].ready) continue;
      states_[uses_[array].combined].frees += steps_.arrays[array].bytes;
      push(uses_[array].combined);
    }
    for (const std::uint32_t next : steps_.graph.after[step])
      if (--states_[next].waits_for == 0) make_ready(next);
  }

  const Steps& steps_;
  std::vector<Uses> uses_;  ///< of each array
  std::vector<State> states_;
  std::priority_queue<Entry> ready_;
  std::uint64_t entries_ = 0;
};

/// Each step after what it waits for, depth first; `visit_first(a, b)` says which of two to take
/// first, and null takes them as they are listed.
template <typename Less>
StepOrder depth_first(const Steps& steps, const Less* visit_first) {
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  std::vector<State> state(steps.size(), State::kNew);
  StepOrder order, stack;
  for (std::uint32_t start = 0; start < steps.size(); ++start) {
    if (!steps.graph.after[start].empty()) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      const std::uint32_t step = stack.back();
      if (state[step] != State::kNew) {
        stack.pop_back();
        if (state[step] == State::kOpen) order.push_back(step);
        state[step] = State::kDone;
        continue;
      }
      state[step] = State::kOpen;
      const auto before = steps.graph.before[step];
      const auto first = static_cast<std::ptrdiff_t>(stack.size());
      for (auto other = before.rbegin(); other != before.rend(); ++other)
        if (state[*other] == State::kNew) stack.push_back(*other);
      if (visit_first)
        std::stable_sort(stack.begin() + first, stack.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return (*visit_first)(b, a); });
    }
  }
  return order;
}

StepOrder post_order(const Steps& steps) {
  using Less = bool (*)(std::uint32_t, std::uint32_t);
  return depth_first<Less>(steps, nullptr);
}

/// XLA's DFSMemoryScheduler. Both sums run over everything a step needs, however often it is
/// reached.
StepOrder depth_first_by_need(const Steps& steps) {
  struct Need {
    std::int64_t extra_users = 0, bytes = 0;
    std::string_view name;
  };
  std::vector<Need> needs(steps.size());
  std::int64_t all_bytes = 0;
  for (const std::uint32_t step : post_order(steps)) {
    Need& need = needs[step];
    const Instruction& in = steps.instruction(step);
    need.name = in.name;
    if (in.opcode == Opcode::kParameter || in.opcode == Opcode::kConstant) continue;
    need.extra_users =
        std::max<std::int64_t>(static_cast<std::int64_t>(steps.graph.users[step].size()) - 1, 0);
    need.bytes = steps.makes[step];
    all_bytes += need.bytes;
    for (const std::uint32_t other : steps.graph.before[step]) {
      need.extra_users += needs[other].extra_users;
      need.bytes += needs[other].bytes;
      // Kept within what is possible, as XLA does: a step is counted once for each way to it.
      need.extra_users = std::min(need.extra_users, static_cast<std::int64_t>(steps.size()));
      need.bytes = std::min(need.bytes, all_bytes);
    }
  }
  const auto visit_first = [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(-needs[a].extra_users, -needs[a].bytes, needs[a].name) <
           std::tuple(-needs[b].extra_users, -needs[b].bytes, needs[b].name);
  };
  return depth_first(steps, &visit_first);
}

}  // namespace

std::string_view name_of(MemoryScheduler scheduler) {
  switch (scheduler) {
    case MemoryScheduler::kList:
      return "list";
    case MemoryScheduler::kDepthFirst:
      return "depth first";
    case MemoryScheduler::kPostOrder:
      return "post-order";
    case MemoryScheduler::kRelaxed:
      return "the given one with nothing hidden";
  }
  return "";
}

namespace {

Schedule order_all(const std::vector<Steps>& all, std::size_t computations,
                   MemoryScheduler scheduler) {
  Schedule schedule;
  schedule.order.resize(computations);
  for (const Steps& steps : all) {
    StepOrder order;
    switch (scheduler) {
      case MemoryScheduler::kList:
        order = ListScheduler(steps).run();
        break;
      case MemoryScheduler::kDepthFirst:
        order = depth_first_by_need(steps);
        break;
      case MemoryScheduler::kPostOrder:
        order = post_order(steps);
        break;
      case MemoryScheduler::kRelaxed:
        order = relaxed_order(steps);
        break;
    }
    auto& instructions = schedule.order[steps.id];
    for (const std::uint32_t step : order) {
      instructions.push_back(steps.graph.steps[step].instruction);
      if (const auto done = steps.graph.steps[step].done) instructions.push_back(*done);
    }
  }
  return schedule;
}

/// The most that device buffers need at once, as XLA compares its schedulers: no gaps, nothing
/// written over an operand.
Bytes most_live(const Liveness& liveness, const IdVector<ValueId, LiveRange>& ranges,
                const FlatSchedule& flat) {
  std::vector<std::int64_t> changes(static_cast<std::size_t>(flat.end().value()) + 2, 0);
  for (const Buffer& buffer : liveness.buffers) {
    if (is_host(buffer.space)) continue;
    for (const ValueId value : buffer.values) {
      // Values of one buffer follow one another: where they meet, only one counts.
      const LiveRange& range = ranges[value];
      const auto end = static_cast<std::size_t>(range.end.value());
      changes[static_cast<std::size_t>(range.start.value())] += buffer.size.value();
      changes[buffer.values.size() > 1 ? end : end + 1] -= buffer.size.value();
    }
  }
  std::int64_t live = 0, most = 0;
  for (const std::int64_t change : changes) most = std::max(most, live += change);
  return Bytes(most);
}

}  // namespace

Schedule schedule_for_memory(const Program& program, const MemoryAssignment& given,
                             MemoryScheduler scheduler) {
  return order_all(make_steps(program, given), program.computations.size(), scheduler);
}

MinimalOrder find_minimal_order(const Program& program, const MemoryAssignment& given) {
  const std::vector<Steps> all = make_steps(program, given);
  struct Candidate {
    MemoryScheduler scheduler;
    Schedule schedule;
    Bytes peak;
  };
  std::optional<Candidate> best;
  for (const MemoryScheduler scheduler : {MemoryScheduler::kList, MemoryScheduler::kDepthFirst,
                                          MemoryScheduler::kPostOrder, MemoryScheduler::kRelaxed}) {
    Schedule schedule = order_all(all, program.computations.size(), scheduler);
    const FlatSchedule flat = flatten(program, schedule);
    const auto ranges = find_live_ranges(program, flat, given.values, given.liveness);
    const Bytes peak = most_live(given.liveness, ranges, flat);
    if (!best || peak < best->peak) best = {scheduler, std::move(schedule), peak};
  }
  const Bytes given_total = sum_totals(given).total_device;
  const Bytes given_peak = most_live(given.liveness, given.liveness.ranges, given.schedule);
  if (best->peak >= given_peak) return {std::nullopt, given_total};
  const auto assigned = assign_memory_below(program, best->schedule, given_total);
  if (!assigned) return {std::nullopt, given_total};
  const Bytes total = sum_totals(*assigned).total_device;
  if (given_total <= total) return {std::nullopt, given_total};
  return {best->scheduler, total};
}

}  // namespace spillway
