#include "model/program/slice_access.h"

#include <utility>
#include <vector>

namespace spillway {
namespace {

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
      if (is_renaming(opcode))
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
        join({AccessKind::kSliceRead, inner_[user].shape, {}});
        return true;
      case Opcode::kDynamicUpdateSlice: {
        const Operand update = inner_.operands(user)[1];
        SliceAccess access{AccessKind::kSliceUpdate, inner_.shape_of(update), {}};
        if (const auto number = find_parameter(inner_, update))
          access.update = outer_.operands(fusion_)[*number];
        join(access);
        return true;
      }
      default:
        return false;
    }
  }

  /// An update says more than a read; of two alike, the larger does.
  void join(const SliceAccess& access) {
    const auto rank = [](const SliceAccess& a) {
      return std::pair(a.kind == AccessKind::kSliceUpdate, a.slice.bytes());
    };
    if (!found_ || rank(access) > rank(*found_)) found_ = access;
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
