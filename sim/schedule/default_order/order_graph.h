// A computation as XLA's memory schedulers see it: instructions and get-tuple-elements, what each
// reads and by whom it is read, and the values that each makes and reads.
//
// A Program has no get-tuple-elements, and does not say in which order XLA made its instructions or
// lists the users of one; both break ties. Here nodes are numbered in post-order, which the graph
// alone decides, and users come in that order; in loops, where XLA makes the elements of the carry
// anew before it schedules, in the opposite one. What that costs: docs/schedule.md.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/memory/values.h"
#include "sim/schedule/step_graph.h"

namespace spillway {

/// Instructions that must wait for others, beside what the program itself says.
using ExtraOrder = std::vector<Precedence>;

class OrderGraph {
 public:
  struct Node {
    InstructionIndex instruction;  ///< of an element, what makes the tuple
    ShapeNodeIndex element = 0;    ///< of the tuple; 0 for instructions
    std::int64_t bytes = 0;        ///< of device memory that it makes
    bool is_scalar = false;        ///< of one element
    bool is_free = false;          ///< a parameter or a constant: there whatever the order

    bool is_element() const { return element != 0; }
  };
  /// What a node makes, or hands on, at one place of its shape.
  struct MadeValue {
    std::int64_t bytes = 0;
    bool is_free = false;
    bool lives_out = false;  ///< of the computation
  };

  const std::vector<Node>& nodes() const { return nodes_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t root() const { return root_; }

  /// In the order of the instruction's text; one that is read twice is there twice.
  std::span<const std::uint32_t> operands(std::uint32_t node) const { return operands_.of(node); }
  std::span<const std::uint32_t> users(std::uint32_t node) const { return users_.of(node); }
  /// Control dependencies.
  std::span<const std::uint32_t> waits_for(std::uint32_t node) const { return waits_for_.of(node); }
  std::span<const std::uint32_t> holds_back(std::uint32_t node) const {
    return holds_back_.of(node);
  }

  const std::vector<MadeValue>& values() const { return values_; }
  /// Numbers of values, each once.
  std::span<const std::uint32_t> reads(std::uint32_t node) const { return reads_.of(node); }

  /// The same with more that must wait for others.
  OrderGraph with(const ExtraOrder& extra) const;

  /// Nodes that nothing reads and nothing waits for, the root last.
  std::vector<std::uint32_t> ends() const;
  /// What XLA compares where nothing else tells two nodes apart.
  std::string name_for_ties(const Computation& computation, std::uint32_t node) const;

 private:
  friend class OrderGraphBuilder;
  struct Lists {
    std::vector<std::uint32_t> first{0}, items;
    std::span<const std::uint32_t> of(std::uint32_t node) const {
      return std::span(items).subspan(first[node], first[node + 1] - first[node]);
    }
  };
  Lists lists_of(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) const;

  std::vector<Node> nodes_;
  std::uint32_t root_ = 0;
  std::vector<std::uint32_t> node_of_;  ///< of each instruction
  Lists operands_, users_, waits_for_, holds_back_, reads_;
  std::vector<MadeValue> values_;
};

/// Nodes in an order of execution.
using NodeOrder = std::vector<std::uint32_t>;

OrderGraph make_order_graph(const Program& program, ComputationId id, const ValueTable& values,
                            bool is_loop);

}  // namespace spillway
