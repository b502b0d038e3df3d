#include "model/cost/element_ops.h"

#include <algorithm>
#include <vector>

#include "model/base/json_value.h"
#include "model/cost/op_count.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

double elements(Shape shape) {
  const Shape array = shape.is_tuple() && shape.tuple_size() > 0 ? shape.element(0) : shape;
  return array.is_array() ? static_cast<double>(array.elements()) : 0;
}

/// Copies change places, not values.
bool is_operation(Opcode opcode) { return is_elementwise(opcode) && opcode != Opcode::kCopy; }

double operations_applied(const Program& program, const Computation& computation,
                          InstructionIndex i) {
  const Computation& function = program[called_by(computation, i)];
  double operations = 0;
  for (const InstructionIndex inner : function.instructions())
    if (is_operation(function[inner].opcode)) ++operations;
  return operations;
}

/// Whether what is broadcast changes along the dimension that is fastest in the result's memory.
bool varies_along_fastest(const Computation& computation, InstructionIndex broadcast) {
  const Shape result = computation[broadcast].shape;
  const auto dims = result.dims();
  const auto layout = result.minor_to_major();
  const auto kept = parse_integers(computation.attribute(broadcast, "dimensions").value_or(""));
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::int64_t d = layout.empty() ? static_cast<std::int64_t>(dims.size() - 1 - k)
                                          : static_cast<std::int64_t>(layout[k]);
    if (dims[static_cast<std::size_t>(d)] != 1) return std::ranges::find(kept, d) != kept.end();
  }
  return false;
}

/// Follows a fused computation backwards from its results: how often each value is computed.
class FusedLoop {
 public:
  FusedLoop(const Program& program, ComputationId fused)
      : program_(program), computation_(program[fused]), runs_(computation_.size(), 0) {}

  double operations() {
    need_results();
    for (std::size_t k = computation_.size(); k-- > 0;) visit(InstructionIndex(k));
    return operations_;
  }

 private:
  void need_results() {
    const InstructionIndex root = computation_.root().instruction;
    if (computation_[root].opcode != Opcode::kTuple) return need(root, own_elements(root));
    for (const Operand& result : computation_.operands(root))
      need(result.instruction, own_elements(result.instruction));
  }

  void visit(InstructionIndex i) {
    const double runs = runs_[i.index];
    const Opcode opcode = computation_[i].opcode;
    if (runs == 0 || opcode == Opcode::kTuple) return;
    if (opcode == Opcode::kReduce) return visit_reduction(i, runs);
    if (opcode == Opcode::kFusion)
      operations_ += FusedLoop(program_, called_by(computation_, i)).operations();
    if (is_operation(opcode)) operations_ += runs;
    const bool once = computes_once(i);
    for (const Operand& operand : computation_.operands(i))
      need(operand.instruction, once ? std::min(runs, own_elements(operand.instruction)) : runs);
  }

  /// Reads all its inputs for each time that it is computed whole; half of the operands start it.
  void visit_reduction(InstructionIndex i, double runs) {
    const double inputs = elements(operand_shape(computation_, i, 0));
    const double times = inputs * std::max(1.0, runs / std::max(1.0, own_elements(i)));
    operations_ += times * operations_applied(program_, computation_, i);
    const auto operands = computation_.operands(i);
    for (std::size_t k = 0; k < operands.size() / 2; ++k) need(operands[k].instruction, times);
  }

  /// Whether a reader needs each element of its operands once, however often it runs itself.
  bool computes_once(InstructionIndex i) const {
    switch (computation_[i].opcode) {
      case Opcode::kBroadcast:
        return !varies_along_fastest(computation_, i);
      case Opcode::kConcatenate:
      case Opcode::kFusion:
      case Opcode::kPad:
        return true;
      default:
        return false;
    }
  }

  void need(InstructionIndex i, double runs) { runs_[i.index] = std::max(runs_[i.index], runs); }
  double own_elements(InstructionIndex i) const { return elements(computation_[i].shape); }

  const Program& program_;
  const Computation& computation_;
  std::vector<double> runs_;
  double operations_ = 0;
};

}  // namespace

Flops count_element_ops(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Opcode opcode = computation[id.instruction].opcode;
  if (opcode == Opcode::kFusion)
    return Flops(FusedLoop(program, called_by(computation, id.instruction)).operations());
  if (opcode == Opcode::kAsyncStart) {
    Flops sum(0);
    const ComputationId wrapped = called_by(computation, id.instruction);
    for (const InstructionIndex i : program[wrapped].instructions())
      sum += count_element_ops(program, {wrapped, i});
    return sum;
  }
  const OpCount count = count_ops(program, id);
  return count.vector_flops + count.transcendentals;
}

}  // namespace spillway
