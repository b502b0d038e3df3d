#include "model/memory/in_place.h"

#include <algorithm>
#include <span>

#include "model/program/call_graph.h"

namespace spillway {
namespace {

/// A value inside a fusion, followed backwards.
struct Place {
  InstructionIndex instruction;
  ShapeNodeIndex node = 0;
};

/// Walks back through tuples and through operations that keep the buffer as it is.
Place follow_indirections(const Computation& computation, Place at) {
  for (;;) {
    const Instruction& in = computation[at.instruction];
    const auto operands = computation.operands(at.instruction);
    if (in.opcode == Opcode::kTuple && at.node > 0) {
      const auto path = in.shape.path(at.node);
      const ShapeNodeIndex child = in.shape.element_node(path[0]);
      const Operand operand = operands[path[0]];
      at = {operand.instruction, operand.node + (at.node - child)};
    } else if (is_renaming(in.opcode) && at.node == 0) {
      at = {operands[0].instruction, operands[0].node};
    } else {
      return at;
    }
  }
}

std::vector<InPlacePair> by_opcode(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  switch (in.opcode) {
    case Opcode::kDynamicUpdateSlice:
      return {{0, 0, 0}};
    case Opcode::kScatter: {
      // operands, indices, updates: a third of them (less one) are scattered into
      const std::uint32_t n = (in.operand_count - 1) / 2;
      if (n == 1) return {{0, 0, 0}};
      std::vector<InPlacePair> pairs;
      for (std::uint32_t k = 0; k < n; ++k) pairs.push_back({k, 0, in.shape.element_node(k)});
      return pairs;
    }
    case Opcode::kAllReduceStart: {
      if (in.operand_count == 1) return {{0, 0, 0}};
      std::vector<InPlacePair> pairs;
      for (std::uint32_t k = 0; k < in.operand_count; ++k)
        pairs.push_back({k, 0, in.shape.element_node(k)});
      return pairs;
    }
    case Opcode::kRaggedAllToAll:
      return {{1, 0, 0}};
    case Opcode::kSetDimensionSize:
      return {{0, 0, 0}};
    default:
      return {};
  }
}

/// The node at a path; as far as the path goes.
ShapeNodeIndex node_of(Shape shape, std::span<const std::int64_t> path) {
  ShapeNodeIndex node = 0;
  for (const std::int64_t k : path) {
    if (k < 0 || k >= shape.tuple_size()) break;
    const auto element = static_cast<std::uint32_t>(k);
    node += shape.element_node(element);
    shape = shape.element(element);
  }
  return node;
}

/// output_to_operand_aliasing={{1}: (3, {}), …}
std::vector<InPlacePair> annotated(const Computation& computation, InstructionIndex i) {
  std::vector<InPlacePair> pairs;
  const auto text = computation.attribute(i, "output_to_operand_aliasing");
  if (!text || text->empty()) return pairs;
  std::string_view rest = text->substr(1);
  while (rest.find('{') != std::string_view::npos) {
    const std::size_t open = rest.find('{');
    const std::size_t close = rest.find('}', open);
    const std::size_t paren = rest.find('(', close);
    const std::size_t end = rest.find(')', close);
    if (close == std::string_view::npos || paren == std::string_view::npos ||
        end == std::string_view::npos)
      break;
    const auto output_path = parse_integers(rest.substr(open, close - open));
    const auto operand = parse_integers(rest.substr(paren, end - paren));
    rest = rest.substr(end);
    if (operand.empty() || operand[0] < 0 || operand[0] >= computation[i].operand_count) continue;
    InPlacePair pair{static_cast<std::uint32_t>(operand[0]), 0, 0};
    pair.output = node_of(computation[i].shape, output_path);
    const Operand source = computation.operands(i)[pair.operand_number];
    pair.operand_node = node_of(computation.shape_of(source), std::span(operand).subspan(1));
    pairs.push_back(pair);
  }
  return pairs;
}

/// Pairs of the instructions inside one fusion; what inner fusions do must be known already.
class FusionSearch {
 public:
  FusionSearch(const Program& program, const InPlacePairs& known, ComputationId inner)
      : known_(known), id_(inner), inner_(program[inner]) {}

  /// An output is in place when what makes it is, and when what that updates is one of the fusion's
  /// own parameters.
  std::vector<InPlacePair> run() const {
    const Operand root = inner_.root();
    const Shape shape = inner_.shape_of(root);
    std::vector<InPlacePair> pairs;
    for (ShapeNodeIndex output = 0; output < shape.node_count(); ++output) {
      if (shape.at(output).is_tuple()) continue;
      const Place source = follow_indirections(inner_, {root.instruction, root.node + output});
      for (const InPlacePair& pair : source_pairs(source.instruction)) {
        if (pair.output != source.node) continue;
        const Place input = behind_fusion(operand_place(source.instruction, pair));
        if (inner_[input.instruction].opcode == Opcode::kParameter)
          pairs.push_back({parameter_number(inner_[input.instruction]), input.node, output});
      }
    }
    return pairs;
  }

 private:
  Place operand_place(InstructionIndex i, const InPlacePair& pair) const {
    const auto operands = inner_.operands(i);
    check(pair.operand_number < operands.size(), "an in-place update has no such operand");
    const Operand operand = operands[pair.operand_number];
    return follow_indirections(inner_, {operand.instruction, operand.node + pair.operand_node});
  }

  std::vector<InPlacePair> source_pairs(InstructionIndex i) const {
    const Opcode opcode = inner_[i].opcode;
    if (opcode == Opcode::kFusion) return known_.of_fused(inner_.called(i)[0]);
    return opcode == Opcode::kCustomCall ? annotated(inner_, i) : by_opcode(inner_, i);
  }

  /// One inner fusion further back, if that is what updates the value.
  Place behind_fusion(Place place) const {
    if (inner_[place.instruction].opcode != Opcode::kFusion) return place;
    for (const InPlacePair& pair : known_.of({id_, place.instruction}))
      if (pair.output == place.node) return operand_place(place.instruction, pair);
    return place;
  }

  const InPlacePairs& known_;
  ComputationId id_;
  const Computation& inner_;
};

}  // namespace

InPlacePairs::InPlacePairs(const Program& program)
    : program_(program), fused_(program.computations.size()) {
  std::vector<bool> is_fused(program.computations.size(), false);
  for (const ComputationId id : ids(program.computations)) {
    const ComputationParts& parts = program[id].parts();
    if (parts.called.empty()) continue;
    for (const Instruction& in : parts.instructions)
      if (in.opcode == Opcode::kFusion) is_fused[parts.called[in.first_called].index] = true;
  }
  // Callees first, so that what inner fusions do is known.
  for (const ComputationId id : computation_post_order(program))
    if (is_fused[id.index]) fused_[id] = FusionSearch(program, *this, id).run();
}

std::vector<InPlacePair> InPlacePairs::of(InstructionId id) const {
  const Computation& computation = program_[id.computation];
  switch (computation[id.instruction].opcode) {
    case Opcode::kFusion: {
      std::vector<InPlacePair> pairs = fused_[computation.called(id.instruction)[0]];
      std::ranges::copy(annotated(computation, id.instruction), std::back_inserter(pairs));
      return pairs;
    }
    case Opcode::kAsyncStart:
    case Opcode::kCustomCall:
      return annotated(computation, id.instruction);
    default:
      return by_opcode(computation, id.instruction);
  }
}

}  // namespace spillway
