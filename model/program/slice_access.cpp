#include "model/program/slice_access.h"

#include <vector>

namespace spillway {
namespace {

/// The fusion operand behind an inner value, through bitcasts and reshapes only.
std::optional<std::uint32_t> outer_operand(const Computation& inner, Operand value) {
  InstructionIndex at = value.instruction;
  while (inner[at].opcode == Opcode::kBitcast || inner[at].opcode == Opcode::kReshape)
    at = inner.operands(at)[0].instruction;
  if (inner[at].opcode != Opcode::kParameter) return std::nullopt;
  return parameter_number(inner[at]);
}

/// Follows a fusion's parameter through bitcasts to those who read it, and joins what they do.
class FusionAccess {
 public:
  FusionAccess(const Computation& outer, InstructionIndex fusion, const Computation& inner)
      : outer_(outer), fusion_(fusion), inner_(inner) {}

  std::optional<SliceAccess> follow(InstructionIndex parameter) {
    std::vector<Use> open;
    const auto push_uses = [&](InstructionIndex value) {
      const auto uses = inner_.uses(value);
      open.insert(open.end(), uses.rbegin(), uses.rend());
    };
    push_uses(parameter);
    while (!open.empty()) {
      const Use use = open.back();
      open.pop_back();
      const Opcode opcode = inner_[use.user].opcode;
      if (opcode == Opcode::kBitcast || opcode == Opcode::kReshape)
        push_uses(use.user);
      else if (use.operand_number != 0 || !join(use.user))
        return std::nullopt;
    }
    return found_;
  }

 private:
  bool join(InstructionIndex user) {
    switch (inner_[user].opcode) {
      case Opcode::kDynamicSlice:
      case Opcode::kSlice:
        if (!found_ || found_->kind == AccessKind::kSliceRead)
          found_ = SliceAccess{AccessKind::kSliceRead, inner_[user].shape, {}};
        return true;
      case Opcode::kDynamicUpdateSlice: {
        const Operand update = inner_.operands(user)[1];
        found_ = SliceAccess{AccessKind::kSliceUpdate, inner_.shape_of(update), {}};
        if (const auto number = outer_operand(inner_, update))
          found_->update = outer_.operands(fusion_)[*number];
        return true;
      }
      default:
        return false;
    }
  }

  const Computation& outer_;
  InstructionIndex fusion_;
  const Computation& inner_;
  std::optional<SliceAccess> found_;
};

}  // namespace

SliceAccess slice_access(const Program& program, InstructionId id, std::uint32_t operand_number) {
  const Computation& computation = program[id.computation];
  const Instruction& in = computation[id.instruction];
  const auto operands = computation.operands(id.instruction);
  const SliceAccess whole{AccessKind::kWhole, computation.shape_of(operands[operand_number]), {}};
  switch (in.opcode) {
    case Opcode::kDynamicSlice:
    case Opcode::kSlice:
      if (operand_number != 0) return whole;
      return {AccessKind::kSliceRead, in.shape, {}};
    case Opcode::kDynamicUpdateSlice:
      if (operand_number != 0) return whole;
      return {AccessKind::kSliceUpdate, computation.shape_of(operands[1]), operands[1]};
    case Opcode::kFusion: {
      const Computation& inner = program[computation.called(id.instruction)[0]];
      FusionAccess access(computation, id.instruction, inner);
      return access.follow(inner.parameters()[operand_number]).value_or(whole);
    }
    default:
      return whole;
  }
}

}  // namespace spillway
