#include "sim/planner/backward_region.h"

#include <algorithm>

#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"
#include "model/program/program.h"

namespace spillway {
namespace {

/// Which instructions of a loop's body hang on nothing that a layer hands to the next: neither the
/// gradient nor sums of it. Elements of the carry may be handed on (parameters, stacks), count, or
/// be made of such alone (a fetch for the next layer).
std::vector<char> without_gradient(const Program& program, InstructionId loop) {
  const Computation& body = program[body_of(program, loop)];
  const InstructionIndex carry = body.parameters()[0];
  const Shape carried = body[carry].shape;
  std::vector<char> is_free_node(carried.node_count(), 0);
  const auto free_all = [&](ShapeNodeIndex node) {
    for (ShapeNodeIndex k = 0; k < carried.at(node).node_count(); ++k) is_free_node[node + k] = 1;
  };
  if (const auto counter = find_counter(program, loop)) free_all(counter->node);
  const auto next = body.operands(body.root().instruction);
  for (std::uint32_t k = 0; k < carried.tuple_size(); ++k)
    if (next[k].instruction == carry && next[k].node == carried.element_node(k))
      free_all(carried.element_node(k));
  std::vector<char> is_free_of(body.size(), 0);
  for (bool changed = true; changed;) {
    for (const InstructionIndex i : body.instructions()) {
      const auto is_free_operand = [&](const Operand& operand) {
        return operand.instruction == carry ? operand.node > 0 && is_free_node[operand.node] != 0
                                            : is_free_of[operand.instruction.index] != 0;
      };
      is_free_of[i.index] = i != carry && std::ranges::all_of(body.operands(i), is_free_operand);
    }
    changed = false;
    for (std::uint32_t k = 0; k < carried.tuple_size(); ++k) {
      const ShapeNodeIndex node = carried.element_node(k);
      if (is_free_node[node] != 0 || next[k].instruction == carry ||
          is_free_of[next[k].instruction.index] == 0)
        continue;
      free_all(node);
      changed = true;
    }
  }
  return is_free_of;
}

/// A copy to or from somewhere, both ends of it.
bool is_copy(Opcode opcode) { return opcode == Opcode::kCopyStart || opcode == Opcode::kCopyDone; }

}  // namespace

BackwardRegion region_of_loop(const Program& program, const MemoryAssignment& memory,
                              const ResidualTable& residuals, InstructionId loop) {
  BackwardRegion region;
  region.body = body_of(program, loop);
  region.layers = known_trip_count(program[loop.computation], loop.instruction).value_or(1);
  region.no_gradient = without_gradient(program, loop);
  region.reads_saved.assign(program[region.body].size(), 0);
  for (const Residual& residual : residuals.residuals)
    for (const StackAccess& read : residual.reads) {
      InstructionId at = read.instruction;
      while (at.computation != region.body && memory.schedule.caller[at.computation])
        at = *memory.schedule.caller[at.computation];
      if (at.computation == region.body) region.reads_saved[at.instruction.index] = 1;
    }
  region.only_brings.assign(program[region.body].size(), 0);
  return region;
}

BackwardRegion region_of_layer(const Program& program, const UnrolledTable& table,
                               std::uint32_t layer) {
  BackwardRegion region;
  region.body = program.entry;
  region.layers = static_cast<std::int64_t>(table.layers.size());
  const Computation& entry = program.entry_computation();
  region.no_gradient.assign(entry.size(), 0);
  region.reads_saved.assign(entry.size(), 0);
  region.only_brings.assign(entry.size(), 0);
  for (const UnrolledResidual& residual : table.residuals)
    for (const UnrolledValue::Read& read : residual.layers[layer].reads)
      region.reads_saved[read.reader.index] = 1;
  std::vector<char> is_gradient(entry.size(), 0);
  for (const InstructionIndex i : table.layers[layer].gradients) is_gradient[i.index] = 1;
  const auto layer_of = [&table](InstructionIndex i) { return table.layer_of[i.index]; };
  for (const InstructionIndex i : entry.instructions()) {
    if (layer_of(i) != layer) continue;
    // What belongs to no layer was made in the forward part, or is a parameter.
    region.no_gradient[i.index] =
        std::ranges::all_of(entry.operands(i), [&](const Operand& operand) {
          const InstructionIndex from = operand.instruction;
          if (is_gradient[from.index] != 0) return false;
          return !layer_of(from) || region.no_gradient[from.index] != 0;
        });
    region.only_brings[i.index] = is_copy(entry[i].opcode);
  }
  return region;
}

}  // namespace spillway
