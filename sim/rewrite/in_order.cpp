#include "sim/rewrite/in_order.h"

#include <algorithm>

namespace spillway {
namespace {

std::shared_ptr<const Computation> in_order(const std::shared_ptr<const Computation>& original,
                                            const std::vector<InstructionIndex>& order) {
  std::vector<std::uint32_t> place(original->size());
  ComputationParts parts = original->parts();
  for (std::uint32_t k = 0; k < order.size(); ++k) {
    place[order[k].index] = k;
    parts.instructions[k] = (*original)[order[k]];
  }
  for (Operand& operand : parts.operands)
    operand.instruction = InstructionIndex(place[operand.instruction.index]);
  parts.root.instruction = InstructionIndex(place[parts.root.instruction.index]);
  parts.storage.push_back(original);
  return make_computation(std::move(parts));
}

}  // namespace

Program in_order(const Program& program, const Schedule& schedule) {
  Program ordered = program;
  for (const ComputationId id : ids(program.computations)) {
    const std::vector<InstructionIndex>& order = schedule.order[id];
    if (!order.empty() && !std::ranges::is_sorted(order))
      ordered.computations[id] = in_order(program.computations[id], order);
  }
  return ordered;
}

}  // namespace spillway
