#include "sim/schedule/default_order/greedy_order.h"

#include <limits>
#include <queue>
#include <tuple>

namespace spillway {
namespace {

class GreedyScheduler {
 public:
  explicit GreedyScheduler(const OrderGraph& graph)
      : graph_(graph), uses_left_(graph.values().size(), 0), states_(graph.size()) {
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      for (const std::uint32_t value : graph.reads(node)) ++uses_left_[value];
      for (const std::uint32_t user : graph.users(node)) ++states_[user].waits_for;
      for (const std::uint32_t other : graph.holds_back(node)) ++states_[other].waits_for;
    }
    for (std::size_t value = 0; value < uses_left_.size(); ++value)
      if (graph.values()[value].lives_out) ++uses_left_[value];
  }

  NodeOrder run() {
    NodeOrder order;
    for (std::uint32_t node = 0; node < graph_.size(); ++node)
      if (states_[node].waits_for == 0) push(node);
    while (!ready_.empty()) {
      const Entry next = ready_.top();
      ready_.pop();
      State& state = states_[next.node];
      if (state.entry != next.number) continue;  // pushed again since, or run
      state.entry = kNotReady;
      order.push_back(next.node);
      finish(next.node);
    }
    check(order.size() == graph_.size(), "a computation's instructions wait for one another");
    return order;
  }

 private:
  static constexpr std::uint64_t kNotReady = 0;
  struct Priority {
    std::int64_t frees = 0;
    std::size_t users = 0;
    friend auto operator<=>(const Priority&, const Priority&) = default;
  };
  struct State {
    std::uint32_t waits_for = 0;
    std::uint64_t entry = kNotReady;
    Priority priority;
  };
  struct Entry {
    Priority priority;
    std::uint64_t number = 0;
    std::uint32_t node = 0;
    bool operator<(const Entry& other) const {
      return std::tie(priority, number) < std::tie(other.priority, other.number);
    }
  };

  Priority priority_of(std::uint32_t node) const {
    if (graph_.nodes()[node].is_scalar)  // at once, so that scalars stay together
      return {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::size_t>::max()};
    std::int64_t frees = -graph_.nodes()[node].bytes;
    for (const std::uint32_t value : graph_.reads(node))
      if (uses_left_[value] == 1 && !graph_.values()[value].is_free)
        frees += graph_.values()[value].bytes;
    return {frees, graph_.users(node).size()};
  }

  void push(std::uint32_t node) {
    State& state = states_[node];
    state.entry = ++entries_;
    state.priority = priority_of(node);
    ready_.push({state.priority, state.entry, node});
  }

  void finish(std::uint32_t node) {
    bool look_again = false;
    for (const std::uint32_t value : graph_.reads(node))
      if (--uses_left_[value] == 1) look_again = true;
    for (const auto& next : {graph_.users(node), graph_.holds_back(node)})
      for (const std::uint32_t other : next)
        if (--states_[other].waits_for == 0) push(other);
    if (!look_again) return;
    for (const std::uint32_t operand : graph_.operands(node))
      for (const std::uint32_t other : graph_.users(operand))
        if (states_[other].entry != kNotReady && priority_of(other) != states_[other].priority)
          push(other);
  }

  const OrderGraph& graph_;
  std::vector<std::uint32_t> uses_left_;  ///< of each value
  std::vector<State> states_;
  std::priority_queue<Entry> ready_;
  std::uint64_t entries_ = kNotReady;
};

}  // namespace

NodeOrder greedy_order(const OrderGraph& graph) { return GreedyScheduler(graph).run(); }

}  // namespace spillway
