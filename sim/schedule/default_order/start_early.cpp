#include "sim/schedule/default_order/start_early.h"

#include <algorithm>

#include "model/program/backend_config.h"

namespace spillway {
namespace {

class StartEarly {
 public:
  StartEarly(const Computation& computation, const OrderGraph& graph)
      : computation_(computation), graph_(graph) {}

  NodeOrder run(const NodeOrder& order) {
    NodeOrder early = pull(join_synchronous(order), Direction::kForward);
    std::ranges::reverse(early);
    NodeOrder late = pull(early, Direction::kBackward);
    std::ranges::reverse(late);
    return late;
  }

 private:
  enum class Direction { kForward, kBackward };

  bool is_synchronous_start(std::uint32_t node) const {
    const OrderGraph::Node& start = graph_.nodes()[node];
    if (start.is_element() || !is_async_start(computation_[start.instruction].opcode)) return false;
    return is_synchronous(computation_, start.instruction) ||
           config_contains(computation_, start.instruction, "\\\"is_sync\\\":true");
  }

  NodeOrder join_synchronous(const NodeOrder& order) const {
    NodeOrder joined;
    for (const std::uint32_t node : order) {
      if (is_synchronous_start(node)) continue;  // comes with its done
      const OrderGraph::Node& done = graph_.nodes()[node];
      if (!done.is_element() && is_async_done(computation_[done.instruction].opcode)) {
        const std::uint32_t start = graph_.operands(node)[0];
        if (is_synchronous_start(start)) joined.push_back(start);
      }
      joined.push_back(node);
    }
    return joined;
  }

  bool is_pulled(std::uint32_t node, Direction direction) const {
    const OrderGraph::Node& pulled = graph_.nodes()[node];
    if (pulled.is_element()) return false;
    const InstructionIndex i = pulled.instruction;
    const bool forward = direction == Direction::kForward;
    switch (computation_[i].opcode) {
      case Opcode::kAsyncStart:
        return forward;
      case Opcode::kAllReduceStart:
      case Opcode::kCollectivePermuteStart:
        return forward && !is_synchronous_start(node);
      case Opcode::kAsyncDone:
        return !forward;
      case Opcode::kAllReduceDone:
      case Opcode::kCollectivePermuteDone:
        return !forward && !is_synchronous_start(graph_.operands(node)[0]);
      case Opcode::kCustomCall:
        return has_attribute(computation_, i, "schedule",
                             forward ? "SCHEDULE_EARLIEST" : "SCHEDULE_LATEST");
      default:
        return false;
    }
  }

  /// `order` with what is pulled right behind the last thing it waits for, in that direction.
  NodeOrder pull(const NodeOrder& order, Direction direction) const {
    const bool forward = direction == Direction::kForward;
    NodeOrder result;
    std::vector<bool> placed(graph_.size(), false);
    const auto place = [&](std::uint32_t node) {
      result.push_back(node);
      placed[node] = true;
    };
    const auto all_placed = [&](auto nodes) {
      return std::ranges::all_of(nodes, [&](std::uint32_t node) { return placed[node]; });
    };
    const auto may_place = [&](std::uint32_t node) {
      if (placed[node] || !is_pulled(node, direction)) return false;
      return forward ? all_placed(graph_.operands(node)) && all_placed(graph_.waits_for(node))
                     : all_placed(graph_.users(node)) && all_placed(graph_.holds_back(node));
    };
    for (const std::uint32_t node : order) {
      if (placed[node]) continue;
      place(node);
      for (const auto& next : {forward ? graph_.users(node) : graph_.operands(node),
                               forward ? graph_.holds_back(node) : graph_.waits_for(node)})
        for (const std::uint32_t other : next)
          if (may_place(other)) place(other);
    }
    check(result.size() == order.size(), "pulling changed how much there is to run");
    return result;
  }

  const Computation& computation_;
  const OrderGraph& graph_;
};

}  // namespace

NodeOrder start_early(const Computation& computation, const OrderGraph& graph,
                      const NodeOrder& order) {
  return StartEarly(computation, graph).run(order);
}

}  // namespace spillway
