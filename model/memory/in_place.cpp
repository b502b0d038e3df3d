#include "model/memory/in_place.h"

#include <algorithm>

namespace spillway {
namespace {

std::vector<InPlacePair> found_in_fusion(const Program& program, InstructionId id);

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
    } else if ((in.opcode == Opcode::kBitcast || in.opcode == Opcode::kReshape) && at.node == 0) {
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

/// output_to_operand_aliasing={{1}: (3, {}), …}
std::vector<InPlacePair> annotated(const Computation& computation, InstructionIndex i) {
  std::vector<InPlacePair> pairs;
  const auto text = computation.attribute(i, "output_to_operand_aliasing");
  if (!text) return pairs;
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
    if (operand.empty() || operand[0] >= computation[i].operand_count) continue;
    InPlacePair pair{static_cast<std::uint32_t>(operand[0]), 0, 0};
    Shape shape = computation[i].shape;
    for (const std::int64_t k : output_path) {
      if (k < 0 || k >= shape.tuple_size()) break;
      pair.output += shape.element_node(static_cast<std::uint32_t>(k));
      shape = shape.element(static_cast<std::uint32_t>(k));
    }
    pairs.push_back(pair);
  }
  return pairs;
}

/// The in-place pairs of what stands at the source of a fusion's output.
std::vector<InPlacePair> source_pairs(const Program& program, ComputationId in,
                                      InstructionIndex i) {
  if (program[in][i].opcode == Opcode::kFusion) return found_in_fusion(program, {in, i});
  std::vector<InPlacePair> pairs = by_opcode(program[in], i);
  if (program[in][i].opcode == Opcode::kCustomCall) pairs = annotated(program[in], i);
  return pairs;
}

/// A fusion's output is in place when its source inside is, and that source's operand is one of the
/// fusion's own parameters.
std::vector<InPlacePair> found_in_fusion(const Program& program, InstructionId id) {
  const Computation& outer = program[id.computation];
  const ComputationId inner_id = outer.called(id.instruction)[0];
  const Computation& inner = program[inner_id];
  const Shape shape = outer[id.instruction].shape;
  std::vector<InPlacePair> pairs;
  for (ShapeNodeIndex output = 0; output < shape.node_count(); ++output) {
    if (shape.at(output).is_tuple()) continue;
    const Operand root = inner.root();
    const Place source = follow_indirections(inner, {root.instruction, root.node + output});
    for (const InPlacePair& pair : source_pairs(program, inner_id, source.instruction)) {
      if (pair.output != source.node) continue;
      const Operand operand = inner.operands(source.instruction)[pair.operand_number];
      Place input =
          follow_indirections(inner, {operand.instruction, operand.node + pair.operand_node});
      if (inner[input.instruction].opcode == Opcode::kFusion) {
        for (const InPlacePair& nested : in_place_pairs(program, {inner_id, input.instruction})) {
          if (nested.output != input.node) continue;
          const Operand through = inner.operands(input.instruction)[nested.operand_number];
          input =
              follow_indirections(inner, {through.instruction, through.node + nested.operand_node});
          break;
        }
      }
      if (inner[input.instruction].opcode == Opcode::kParameter)
        pairs.push_back({parameter_number(inner[input.instruction]), input.node, output});
    }
  }
  return pairs;
}

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  switch (computation[id.instruction].opcode) {
    case Opcode::kFusion: {
      std::vector<InPlacePair> pairs = found_in_fusion(program, id);
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
