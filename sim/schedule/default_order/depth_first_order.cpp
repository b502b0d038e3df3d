#include "sim/schedule/default_order/depth_first_order.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <tuple>

namespace spillway {
namespace {

/// `list_before(node, list)` adds what is to be visited before a node, in order.
template <typename ListBefore>
NodeOrder walk(const OrderGraph& graph, ListBefore list_before) {
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  std::vector<State> state(graph.size(), State::kNew);
  NodeOrder order, stack, before;
  for (const std::uint32_t end : graph.ends()) {
    stack.push_back(end);
    while (!stack.empty()) {
      const std::uint32_t node = stack.back();
      if (state[node] != State::kNew) {
        stack.pop_back();
        if (state[node] == State::kOpen) order.push_back(node);
        state[node] = State::kDone;
        continue;
      }
      state[node] = State::kOpen;
      before.clear();
      list_before(node, before);
      for (auto other = before.rbegin(); other != before.rend(); ++other)
        if (state[*other] == State::kNew) stack.push_back(*other);
    }
  }
  check(order.size() == graph.size(), "a computation's instructions wait for one another");
  return order;
}

/// Sums over everything above a node, however often it is reached.
struct Above {
  std::int64_t extra_users = 0, bytes = 0;
  std::uint32_t name_rank = 0;

  bool operator<(const Above& other) const {
    return std::tuple(-extra_users, -bytes, name_rank) <
           std::tuple(-other.extra_users, -other.bytes, other.name_rank);
  }
};

std::vector<std::uint32_t> rank_names(const Computation& computation, const OrderGraph& graph) {
  std::deque<std::string> made;
  std::vector<std::pair<std::string_view, std::uint32_t>> names;
  names.reserve(graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    names.emplace_back(graph.nodes()[node].is_element()
                           ? made.emplace_back(graph.name_for_ties(computation, node))
                           : computation[graph.nodes()[node].instruction].name,
                       node);
  std::ranges::sort(names);
  std::vector<std::uint32_t> ranks(graph.size());
  for (std::uint32_t k = 0; k < names.size(); ++k) ranks[names[k].second] = k;
  return ranks;
}

std::vector<Above> sum_above(const Computation& computation, const OrderGraph& graph) {
  const std::vector<std::uint32_t> ranks = rank_names(computation, graph);
  std::vector<Above> sums(graph.size());
  std::int64_t all_bytes = 0;
  for (const std::uint32_t node : post_order(graph)) {
    Above& sum = sums[node];
    sum.name_rank = ranks[node];
    if (graph.nodes()[node].is_free) continue;
    const auto users = static_cast<std::int64_t>(graph.users(node).size());
    sum.extra_users = std::max<std::int64_t>(users - 1, 0);
    sum.bytes = graph.nodes()[node].bytes;
    all_bytes += sum.bytes;
    std::vector<std::uint32_t> operands(graph.operands(node).begin(), graph.operands(node).end());
    std::ranges::sort(operands);
    operands.erase(std::ranges::unique(operands).begin(), operands.end());
    for (const std::uint32_t operand : operands) {
      sum.extra_users += sums[operand].extra_users;
      sum.bytes += sums[operand].bytes;
    }
    // Kept within what is possible, as XLA does; once for all operands of a node.
    sum.extra_users = std::min(sum.extra_users, static_cast<std::int64_t>(graph.size()));
    sum.bytes = std::min(sum.bytes, all_bytes);
  }
  return sums;
}

}  // namespace

NodeOrder post_order(const OrderGraph& graph) {
  return walk(graph, [&](std::uint32_t node, NodeOrder& before) {
    const auto control = graph.waits_for(node);
    before.insert(before.end(), control.rbegin(), control.rend());
    const auto operands = graph.operands(node);
    before.insert(before.end(), operands.begin(), operands.end());
  });
}

NodeOrder fan_out_order(const Computation& computation, const OrderGraph& graph) {
  const std::vector<Above> above = sum_above(computation, graph);
  return walk(graph, [&](std::uint32_t node, NodeOrder& before) {
    for (const auto& list : {graph.operands(node), graph.waits_for(node)})
      before.insert(before.end(), list.begin(), list.end());
    std::ranges::sort(before,
                      [&](std::uint32_t a, std::uint32_t b) { return above[a] < above[b]; });
  });
}

}  // namespace spillway
