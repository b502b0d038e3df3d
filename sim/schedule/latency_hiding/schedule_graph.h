// The graph that XLA's latency-hiding scheduler orders: the instructions of one computation, and
// the get-tuple-elements that a Program does not have.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/schedule/latency_hiding/schedule_node.h"

namespace spillway {

/// The number of a node: its place in the order that was given.
using NodeIndex = std::uint32_t;

struct ScheduleEdge {
  NodeIndex other = 0;
  double latency = 0;
};

class ScheduleGraph {
 public:
  const std::vector<ScheduleNode>& nodes() const { return nodes_; }
  const ScheduleNode& operator[](NodeIndex node) const { return nodes_[node]; }
  /// What a node reads or must follow, in the order that was given; one that it both reads and must
  /// follow is there twice.
  std::span<const ScheduleEdge> before(NodeIndex node) const { return before_.of(node); }
  std::span<const ScheduleEdge> after(NodeIndex node) const { return after_.of(node); }

 private:
  friend class ScheduleGraphBuilder;
  struct Edges {
    std::vector<std::uint32_t> first;
    std::vector<ScheduleEdge> edges;
    std::span<const ScheduleEdge> of(NodeIndex node) const {
      return std::span(edges).subspan(first[node], first[node + 1] - first[node]);
    }
  };
  std::vector<ScheduleNode> nodes_;
  Edges before_, after_;
};

/// An order of a computation's instructions {x, 0} and of the elements {x, node} of tuples that
/// others read.
using ElementOrder = std::vector<Operand>;

/// Elements in front of who reads them first.
ElementOrder with_elements(const Computation& computation,
                           const std::vector<InstructionIndex>& order);

/// `order` is the computation's; `needs_of` says of each computation that runs by itself how much
/// of each resource it takes at once.
ScheduleGraph make_schedule_graph(const ScheduleInput& input, ComputationId id,
                                  const ElementOrder& order,
                                  const IdVector<ComputationId, ResourceCounts>& needs_of);

/// The most that is in flight at once of each resource in a computation that runs in `order`.
ResourceCounts resources_at_once(const Program& program, ComputationId id,
                                 const std::vector<InstructionIndex>& order,
                                 const IdVector<ComputationId, ResourceCounts>& needs_of);

}  // namespace spillway
