#include "sim/schedule/latency_hiding/schedule_graph.h"

#include <algorithm>

#include "model/program/control_predecessors.h"
#include "sim/schedule/latency_hiding/schedule_node.h"

namespace spillway {
namespace {

constexpr NodeIndex kNone = ~NodeIndex{0};
/// Between instructions that wait for nothing asynchronous: XLA's kLowLatency.
constexpr double kSynchronous = 1;

}  // namespace

class ScheduleGraphBuilder {
 public:
  ScheduleGraphBuilder(const ScheduleInput& input, ComputationId id, const ElementOrder& order)
      : input_(input), id_(id), computation_(input.program[id]), control_(computation_) {
    graph_.nodes_.reserve(order.size());
    for (const Operand& place : order)
      graph_.nodes_.push_back({.place = place, .is_nop = place.node != 0});
    number_nodes();
  }

  ScheduleGraph build(const IdVector<ComputationId, ResourceCounts>& needs_of) {
    for (ScheduleNode& node : graph_.nodes_)
      if (!node.is_element()) describe_instruction(input_, id_, needs_of, node);
    mark_readers_of_dones();
    find_followers();
    find_aliases();
    if (!connect()) {
      // XLA would give such a program up. What comes later in the order given needs no edge: in
      // that order it is right.
      only_forward_ = true;
      check(connect(), "instructions wait for one another in the order that was given");
    }
    return std::move(graph_);
  }

 private:
  struct Edge {
    NodeIndex from = 0, to = 0;
    double latency = 0;
    std::uint32_t next_to_same = kNone;  ///< an earlier edge to the same node
  };

  void number_nodes();
  void mark_readers_of_dones();
  void find_followers();
  void find_aliases();
  bool connect();
  void add_edges();
  void add_edge(NodeIndex from, NodeIndex to, double latency);
  void add_edge(NodeIndex from, NodeIndex to);
  void keep_away_from(NodeIndex done);
  bool leads_to(NodeIndex from, NodeIndex to);
  void mark_reached_from(NodeIndex node, NodeIndex last);
  template <typename Key>
  ScheduleGraph::Edges sorted(Key key) const;
  bool find_depths();

  /// The node an operand comes from: its instruction, or the element of it.
  NodeIndex node_of(Operand operand) const {
    const NodeIndex whole = node_of_[operand.instruction.index];
    if (operand.node == 0) return whole;
    return element_node_[first_element_[operand.instruction.index] + operand.node];
  }

  const ScheduleInput& input_;
  ComputationId id_;
  const Computation& computation_;
  ControlPredecessors control_;
  ScheduleGraph graph_;
  std::vector<NodeIndex> node_of_;            ///< of each instruction
  std::vector<std::uint32_t> first_element_;  ///< of each instruction, into element_node_
  std::vector<NodeIndex> element_node_;
  std::vector<std::vector<NodeIndex>> users_, followers_;  ///< of each node
  std::vector<std::vector<NodeIndex>> alias_users_;        ///< of each node that is a done
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> last_to_;  ///< of each node, the last edge to it
  std::vector<std::uint32_t> visited_;  ///< of each node, the search that saw it
  std::uint32_t search_ = 0;
  std::vector<std::uint32_t> reached_;  ///< of each node, the last walk that came by
  std::uint32_t walk_ = 0;
  bool only_forward_ = false;  ///< edges that keep others away from copies
};

void ScheduleGraphBuilder::number_nodes() {
  node_of_.assign(computation_.size(), kNone);
  first_element_.reserve(computation_.size());
  std::uint32_t next = 0;
  for (const InstructionIndex i : computation_.instructions()) {
    first_element_.push_back(next);
    next += computation_[i].shape.node_count();
  }
  element_node_.assign(next, kNone);
  for (NodeIndex k = 0; k < graph_.nodes_.size(); ++k) {
    const ScheduleNode& node = graph_.nodes_[k];
    const std::uint32_t i = node.instruction().index;
    (node.is_element() ? element_node_[first_element_[i] + node.place.node] : node_of_[i]) = k;
  }
}

void ScheduleGraphBuilder::mark_readers_of_dones() {
  for (ScheduleNode& node : graph_.nodes_) {
    const auto is_done = [&](const Operand& operand) {
      return graph_.nodes_[node_of({operand.instruction, 0})].is_done;
    };
    if (node.is_element())
      node.reads_done = is_done({node.instruction()});
    else
      node.reads_done = std::ranges::any_of(
          computation_.operands(node.instruction()),
          [&](const Operand& operand) { return operand.node == 0 && is_done(operand); });
  }
}

void ScheduleGraphBuilder::find_followers() {
  const std::size_t nodes = graph_.nodes_.size();
  users_.resize(nodes);
  followers_.resize(nodes);
  const auto add = [](std::vector<NodeIndex>& list, NodeIndex node) {
    if (list.empty() || list.back() != node) list.push_back(node);
  };
  for (NodeIndex node = 0; node < nodes; ++node) {
    const InstructionIndex i = graph_.nodes_[node].instruction();
    if (graph_.nodes_[node].is_element()) {
      add(users_[node_of_[i.index]], node);
      continue;
    }
    for (const Operand& operand : computation_.operands(i)) add(users_[node_of(operand)], node);
    for (const InstructionIndex other : control_.of(i))
      add(followers_[node_of_[other.index]], node);
  }
}

/// Who else reads the buffer that a done hands over, or one that lies in the same place.
void ScheduleGraphBuilder::find_aliases() {
  const Liveness& liveness = input_.liveness;
  alias_users_.resize(graph_.nodes_.size());
  std::vector<std::pair<ValueId, std::vector<NodeIndex>>> uses;  // of values that matter
  IdVector<ValueId, std::uint32_t> slot;
  for (NodeIndex done = 0; done < graph_.nodes_.size(); ++done) {
    if (!graph_.nodes_[done].is_done) continue;
    const ValueId value = input_.values.at({id_, graph_.nodes_[done].instruction()}, 0);
    for (const ValueId other : liveness.buffers[liveness.buffer_of[value]].values) {
      if (slot.empty()) slot = IdVector<ValueId, std::uint32_t>(input_.values.values().size(), 0);
      if (slot[other] != 0) continue;
      uses.push_back({other, {}});
      slot[other] = static_cast<std::uint32_t>(uses.size());
    }
  }
  if (uses.empty()) return;
  for (NodeIndex node = 0; node < graph_.nodes_.size(); ++node) {
    const InstructionIndex i = graph_.nodes_[node].instruction();
    const auto note = [&](Operand at) {
      if (const std::uint32_t found = slot[input_.values.at(id_, at)]; found != 0)
        uses[found - 1].second.push_back(node);
    };
    if (graph_.nodes_[node].is_element()) {
      note({i, 0});
      continue;
    }
    const Opcode opcode = computation_[i].opcode;
    if (opcode == Opcode::kTuple || opcode == Opcode::kDomain) continue;  // they only hand it on
    for (const Operand& operand : computation_.operands(i)) {
      const std::uint32_t nodes =
          opcode == Opcode::kCopy ? 1 : computation_.shape_of(operand).node_count();
      for (ShapeNodeIndex k = 0; k < nodes; ++k) note({operand.instruction, operand.node + k});
    }
  }
  for (NodeIndex done = 0; done < graph_.nodes_.size(); ++done) {
    if (!graph_.nodes_[done].is_done) continue;
    const InstructionId id{id_, graph_.nodes_[done].instruction()};
    const ValueId value = input_.values.at(id, 0);
    for (const ValueId other : liveness.buffers[liveness.buffer_of[value]].values)
      if (input_.values[other].defined_at.instruction != id)
        std::ranges::copy(uses[slot[other] - 1].second, std::back_inserter(alias_users_[done]));
  }
}

/// False where nodes wait for one another.
bool ScheduleGraphBuilder::connect() {
  edges_.clear();
  add_edges();
  graph_.before_ = sorted([](const Edge& edge) { return std::pair(edge.to, edge.from); });
  graph_.after_ = sorted([](const Edge& edge) { return std::pair(edge.from, edge.to); });
  return find_depths();
}

void ScheduleGraphBuilder::add_edges() {
  const auto nodes = static_cast<NodeIndex>(graph_.nodes_.size());
  last_to_.assign(nodes, kNone);
  visited_.assign(nodes, 0);
  for (NodeIndex node = 0; node < nodes; ++node) {
    for (const NodeIndex user : users_[node]) add_edge(node, user);
    for (const NodeIndex follower : followers_[node]) add_edge(node, follower);
    if (!alias_users_[node].empty()) keep_away_from(node);
  }
}

void ScheduleGraphBuilder::add_edge(NodeIndex from, NodeIndex to) {
  const ScheduleNode& a = graph_.nodes_[from];
  const ScheduleNode& b = graph_.nodes_[to];
  if (a.is_element() || b.is_element()) return add_edge(from, to, kSynchronous);
  add_edge(from, to,
           input_.estimator.latency(input_.program, id_, a.instruction(), b.instruction()));
}

void ScheduleGraphBuilder::add_edge(NodeIndex from, NodeIndex to, double latency) {
  edges_.push_back({from, to, latency, last_to_[to]});
  last_to_[to] = static_cast<std::uint32_t>(edges_.size() - 1);
}

/// While a copy is under way, nobody may read or write where it writes: whoever does, and does not
/// come after the done, comes before the start. XLA looks for ways back among the edges that it has
/// made so far.
void ScheduleGraphBuilder::keep_away_from(NodeIndex done) {
  const NodeIndex start =
      node_of_[computation_.operands(graph_.nodes_[done].instruction())[0].instruction.index];
  mark_reached_from(done, std::ranges::max(alias_users_[done]));
  for (const NodeIndex user : alias_users_[done]) {
    if (user == start || reached_[user] == walk_ || leads_to(start, user)) continue;
    if (only_forward_ && user > start) continue;
    add_edge(user, start, kSynchronous);
  }
}

/// Along the edges made so far, backwards.
bool ScheduleGraphBuilder::leads_to(NodeIndex from, NodeIndex to) {
  ++search_;
  std::vector<NodeIndex> stack = {to};
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (node == from) return true;
    if (visited_[node] == search_) continue;
    visited_[node] = search_;
    for (std::uint32_t edge = last_to_[node]; edge != kNone; edge = edges_[edge].next_to_same)
      stack.push_back(edges_[edge].from);
  }
  return false;
}

/// What must come after a node, up to node `last`: whoever reads or follows another stands behind
/// it in the order given.
void ScheduleGraphBuilder::mark_reached_from(NodeIndex node, NodeIndex last) {
  ++walk_;
  reached_.resize(graph_.nodes_.size(), 0);
  std::vector<NodeIndex> stack = {node};
  reached_[node] = walk_;
  while (!stack.empty()) {
    const NodeIndex at = stack.back();
    stack.pop_back();
    for (const auto* list : {&users_[at], &followers_[at]})
      for (const NodeIndex next : *list)
        if (next <= last && reached_[next] != walk_) {
          reached_[next] = walk_;
          stack.push_back(next);
        }
  }
}

/// `key` gives the node at whose edges this is, and the other.
template <typename Key>
ScheduleGraph::Edges ScheduleGraphBuilder::sorted(Key key) const {
  ScheduleGraph::Edges result;
  result.first.assign(graph_.nodes_.size() + 1, 0);
  for (const Edge& edge : edges_) ++result.first[key(edge).first + 1];
  for (std::size_t k = 1; k < result.first.size(); ++k) result.first[k] += result.first[k - 1];
  std::vector<std::uint32_t> next = result.first;
  result.edges.resize(edges_.size());
  for (const Edge& edge : edges_)
    result.edges[next[key(edge).first]++] = {key(edge).second, edge.latency};
  return result;
}

bool ScheduleGraphBuilder::find_depths() {
  // Not the order of numbers alone: a node that must stay away from a done may come after the start
  // in the order that was given.
  const std::size_t nodes = graph_.nodes_.size();
  std::vector<std::size_t> waits_for(nodes);
  std::vector<NodeIndex> ready;
  for (NodeIndex node = 0; node < nodes; ++node) {
    waits_for[node] = graph_.before(node).size();
    if (waits_for[node] == 0) ready.push_back(node);
  }
  std::size_t found = 0;
  for (; !ready.empty(); ++found) {
    const NodeIndex node = ready.back();
    ready.pop_back();
    ScheduleNode& at = graph_.nodes_[node];
    at.async_depth = at.depth = 0;
    for (const ScheduleEdge& edge : graph_.before(node)) {
      const ScheduleNode& other = graph_.nodes_[edge.other];
      at.async_depth =
          std::max(at.async_depth, other.async_depth + (at.is_done ? edge.latency : 0));
      at.depth = std::max(at.depth, other.depth + other.cost + edge.latency);
    }
    for (const ScheduleEdge& edge : graph_.after(node))
      if (--waits_for[edge.other] == 0) ready.push_back(edge.other);
  }
  return found == nodes;
}

ElementOrder with_elements(const Computation& computation,
                           const std::vector<InstructionIndex>& order) {
  ElementOrder result;
  std::vector<std::vector<ShapeNodeIndex>> seen(computation.size());  // elements of each
  const auto add_element = [&](Operand operand) {
    auto& elements = seen[operand.instruction.index];
    if (operand.node == 0 || std::ranges::find(elements, operand.node) != elements.end()) return;
    elements.push_back(operand.node);
    result.push_back(operand);
  };
  for (const InstructionIndex i : order) {
    for (const Operand& operand : computation.operands(i)) add_element(operand);
    result.push_back({i, 0});
  }
  add_element(computation.root());
  return result;
}

ScheduleGraph make_schedule_graph(const ScheduleInput& input, ComputationId id,
                                  const ElementOrder& order,
                                  const IdVector<ComputationId, ResourceCounts>& needs_of) {
  return ScheduleGraphBuilder(input, id, order).build(needs_of);
}

ResourceCounts resources_at_once(const Program& program, ComputationId id,
                                 const std::vector<InstructionIndex>& order,
                                 const IdVector<ComputationId, ResourceCounts>& needs_of) {
  const Computation& computation = program[id];
  ResourceCounts in_flight{}, most{};
  const auto raise = [&](std::size_t kind, std::int32_t count) {
    most[kind] = std::max(most[kind], count);
  };
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    const auto operation = async_operation(program, {id, *i});
    if (operation && operation->is_hidden) {
      const auto kind = static_cast<std::size_t>(operation->resource);
      if (operation->role == AsyncOperation::Role::kDone)
        raise(kind, ++in_flight[kind]);
      else
        --in_flight[kind];
    }
    if (!is_control_flow(computation[*i].opcode)) continue;
    for (const ComputationId callee : computation.called(*i))
      for (std::size_t kind = 0; kind < kAsyncResources; ++kind)
        if (needs_of[callee][kind] > 0) raise(kind, in_flight[kind] + needs_of[callee][kind]);
  }
  return most;
}

}  // namespace spillway
