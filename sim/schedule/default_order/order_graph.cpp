#include "sim/schedule/default_order/order_graph.h"

#include <algorithm>

#include "model/program/call_graph.h"
#include "model/program/control_predecessors.h"

namespace spillway {

namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

constexpr std::uint32_t kNone = ~0u;

}  // namespace

class OrderGraphBuilder {
 public:
  OrderGraphBuilder(const Program& program, ComputationId id, const ValueTable& values,
                    bool is_loop)
      : program_(program), id_(id), computation_(program[id]), values_(values), is_loop_(is_loop) {}

  OrderGraph run() {
    add_nodes();
    add_operands();
    add_control();
    add_values();
    return std::move(graph_);
  }

 private:
  /// Instructions in post-order, each followed by the elements that are taken of it, so that every
  /// node stands behind what it reads.
  void add_nodes() {
    first_.reserve(computation_.size());
    std::uint32_t places = 0;
    for (const InstructionIndex i : computation_.instructions()) {
      first_.push_back(places);
      places += computation_[i].shape.node_count();
    }
    number_.assign(places, kNone);
    for (const InstructionIndex i : computation_.instructions())
      for (const Operand& operand : computation_.operands(i)) note(operand);
    note(computation_.root());
    graph_.node_of_.resize(computation_.size());
    for (const InstructionIndex i : instruction_post_order(computation_)) {
      add_node(i, 0);
      const std::uint32_t nodes = computation_[i].shape.node_count();
      for (ShapeNodeIndex node = 1; node < nodes; ++node)
        if (number_[first_[i.index] + node] == kTaken) add_node(i, node);
    }
    graph_.root_ = number(computation_.root());
  }

  /// That an element is taken out of its tuple, and so are those around it.
  void note(Operand operand) {
    for (ShapeNodeIndex node = operand.node; node != 0;) {
      std::uint32_t& number = number_[first_[operand.instruction.index] + node];
      if (number == kTaken) return;
      number = kTaken;
      node = parent_of(computation_[operand.instruction].shape, node);
    }
  }

  void add_node(InstructionIndex i, ShapeNodeIndex element) {
    number_[first_[i.index] + element] = graph_.size();
    if (element == 0) graph_.node_of_[i.index] = graph_.size();
    OrderGraph::Node node{i, element};
    const Shape shape = computation_[i].shape.at(element);
    node.is_scalar = shape.is_array() && shape.elements() == 1;
    const Opcode opcode = computation_[i].opcode;
    node.is_free = element == 0 && (opcode == Opcode::kParameter || opcode == Opcode::kConstant);
    graph_.nodes_.push_back(node);
  }

  std::uint32_t number(Operand operand) const {
    return number_[first_[operand.instruction.index] + operand.node];
  }

  /// The tuple around a node of a shape.
  static ShapeNodeIndex parent_of(Shape shape, ShapeNodeIndex node) {
    if (shape.is_flat_tuple()) return 0;
    ShapeNodeIndex parent = 0;
    for (;;) {
      const Shape tuple = shape.at(parent);
      ShapeNodeIndex inside = 0;
      for (std::uint32_t k = 0; k < tuple.tuple_size(); ++k) {
        const ShapeNodeIndex child = parent + tuple.element_node(k);
        if (child == node) return parent;
        if (child < node) inside = child;
      }
      parent = inside;
    }
  }

  void add_operands() {
    std::vector<Edge> reads, users;
    std::vector<std::uint32_t> read;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const auto [i, element, bytes, is_scalar, is_free] = graph_.nodes_[node];
      read.clear();
      if (element != 0) {
        read.push_back(number({i, parent_of(computation_[i].shape, element)}));
      } else {
        for (const Operand& operand : computation_.operands(i)) read.push_back(number(operand));
      }
      for (const std::uint32_t other : read) reads.push_back({node, other});
      std::ranges::sort(read);
      read.erase(std::ranges::unique(read).begin(), read.end());
      for (const std::uint32_t other : read) users.push_back({other, node});
    }
    if (is_loop_) std::ranges::reverse(users);
    graph_.operands_ = graph_.lists_of(reads);
    graph_.users_ = graph_.lists_of(users);
  }

  void add_control() {
    std::vector<Edge> waits, holds;
    ControlPredecessors control(computation_);
    for (const InstructionIndex i : computation_.instructions())
      for (const InstructionIndex other : control.of(i)) {
        waits.push_back({number({i, 0}), number({other, 0})});
        holds.push_back({number({other, 0}), number({i, 0})});
      }
    graph_.waits_for_ = graph_.lists_of(waits);
    graph_.holds_back_ = graph_.lists_of(holds);
  }

  void add_values() {
    std::vector<std::uint32_t> numbers(values_.values().size(), kNone), read_by;
    std::vector<Edge> reads;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      OrderGraph::Node& made = graph_.nodes_[node];
      if (!made.is_element()) made.bytes = bytes_made(made.instruction);
      for (const std::uint32_t operand : graph_.operands(node))
        for_each_value(operand, [&](ValueId value) {
          const std::uint32_t k = value_number(value, numbers);
          read_by.resize(graph_.values_.size(), kNone);
          if (read_by[k] == node) return;
          read_by[k] = node;
          reads.push_back({node, k});
        });
    }
    for_each_value(graph_.root_, [&](ValueId value) {
      graph_.values_[value_number(value, numbers)].lives_out = true;
    });
    graph_.reads_ = graph_.lists_of(reads);
  }

  std::uint32_t value_number(ValueId value, std::vector<std::uint32_t>& numbers) {
    if (numbers[value.index] == kNone) {
      numbers[value.index] = static_cast<std::uint32_t>(graph_.values_.size());
      const Opcode opcode = program_[values_[value].defined_at.instruction].opcode;
      graph_.values_.push_back(
          {device_bytes(value), opcode == Opcode::kParameter || opcode == Opcode::kConstant});
    }
    return numbers[value.index];
  }

  template <typename Visit>
  void for_each_value(std::uint32_t node, Visit visit) const {
    const OrderGraph::Node& shown = graph_.nodes_[node];
    const InstructionId id{id_, shown.instruction};
    const std::uint32_t count = program_[id].shape.at(shown.element).node_count();
    for (ShapeNodeIndex k = 0; k < count; ++k) visit(values_.at(id, shown.element + k));
  }

  std::int64_t device_bytes(ValueId value) const {
    const Shape shape = values_[value].shape;
    return is_host(shape.space()) ? 0 : shape.bytes().value();
  }

  std::int64_t bytes_made(InstructionIndex i) const {
    const InstructionId id{id_, i};
    const Opcode opcode = program_[id].opcode;
    if (opcode == Opcode::kParameter || opcode == Opcode::kConstant) return 0;
    std::int64_t bytes = 0;
    for (ShapeNodeIndex node = 0; node < program_[id].shape.node_count(); ++node) {
      const ValueId value = values_.at(id, node);
      const Position& at = values_[value].defined_at;
      if (at.instruction == id && at.node == node) bytes += device_bytes(value);
    }
    return bytes;
  }

  static constexpr std::uint32_t kTaken = kNone - 1;  ///< and has no number yet
  const Program& program_;
  const ComputationId id_;
  const Computation& computation_;
  const ValueTable& values_;
  const bool is_loop_;
  std::vector<std::uint32_t> first_;   ///< place of each instruction in number_
  std::vector<std::uint32_t> number_;  ///< of instruction and element
  OrderGraph graph_;
};

OrderGraph::Lists OrderGraph::lists_of(const std::vector<Edge>& edges) const {
  Lists lists;
  lists.first.assign(size() + 1, 0);
  for (const auto& [from, to] : edges) ++lists.first[from + 1];
  for (std::uint32_t k = 1; k <= size(); ++k) lists.first[k] += lists.first[k - 1];
  std::vector<std::uint32_t> next = lists.first;
  lists.items.resize(edges.size());
  for (const auto& [from, to] : edges) lists.items[next[from]++] = to;
  return lists;
}

OrderGraph OrderGraph::with(const ExtraOrder& extra) const {
  OrderGraph graph = *this;
  std::vector<Edge> waits, holds;
  for (std::uint32_t node = 0; node < size(); ++node) {
    for (const std::uint32_t other : waits_for(node)) waits.push_back({node, other});
    for (const std::uint32_t other : holds_back(node)) holds.push_back({node, other});
  }
  for (const Precedence& p : extra) {
    const std::uint32_t first = node_of_[p.first.index], then = node_of_[p.then.index];
    waits.push_back({then, first});
    holds.push_back({first, then});
  }
  graph.waits_for_ = lists_of(waits);
  graph.holds_back_ = lists_of(holds);
  return graph;
}

std::vector<std::uint32_t> OrderGraph::ends() const {
  std::vector<std::uint32_t> ends;
  for (std::uint32_t node = 0; node < size(); ++node)
    if (users(node).empty() && holds_back(node).empty() && node != root_) ends.push_back(node);
  ends.push_back(root_);
  return ends;
}

std::string OrderGraph::name_for_ties(const Computation& computation, std::uint32_t node) const {
  const Node& named = nodes_[node];
  if (!named.is_element()) return std::string(computation[named.instruction].name);
  // XLA numbers them as it makes them, first elements first.
  std::string number = std::to_string(node);
  number.insert(0, 10 - std::min<std::size_t>(number.size(), 10), '0');
  return "get-tuple-element." + number;
}

OrderGraph make_order_graph(const Program& program, ComputationId id, const ValueTable& values,
                            bool is_loop) {
  return OrderGraphBuilder(program, id, values, is_loop).run();
}

}  // namespace spillway
