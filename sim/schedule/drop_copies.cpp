#include "sim/schedule/drop_copies.h"

#include <algorithm>
#include <vector>

#include "model/program/call_graph.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

/// One body in its order.
class Body {
 public:
  Body(const Program& program, ComputationId id, const std::vector<InstructionIndex>& order)
      : program_(program), body_(program[id]), place_(body_.size(), 0) {
    for (std::size_t k = 0; k < order.size(); ++k) place_[order[k].index] = k;
  }

  bool needs(InstructionIndex copy) const;

 private:
  bool is_made_anew(Operand value) const;
  bool all_read_before(Operand value, InstructionIndex end, InstructionIndex except) const;

  const Program& program_;
  const Computation& body_;
  std::vector<std::size_t> place_;
};

/// Whether a value has a buffer of its own from where it is made.
bool Body::is_made_anew(Operand value) const {
  if (body_[value.instruction].opcode != Opcode::kFusion) return false;
  const Computation& fused = program_[body_.called(value.instruction)[0]];
  for (const InstructionIndex i : fused.instructions())
    if (fused[i].opcode == Opcode::kDynamicUpdateSlice) return false;
  return true;
}

/// Whether all who read a value, behind renamings, have run when `end` begins.
bool Body::all_read_before(Operand value, InstructionIndex end, InstructionIndex except) const {
  for (const Use& use : body_.uses(value.instruction)) {
    if (use.user == except || body_.operands(use.user)[use.operand_number] != value) continue;
    if (is_renaming(body_[use.user].opcode)) {
      if (!all_read_before({use.user, 0}, end, except)) return false;
      continue;
    }
    if (body_[use.user].opcode != Opcode::kFusion || !is_made_anew({use.user, 0}) ||
        place_[use.user.index] >= place_[end.index])
      return false;
  }
  return true;
}

bool Body::needs(InstructionIndex copy) const {
  const Operand carried = body_.operands(copy)[0];
  if (body_[carried.instruction].opcode != Opcode::kParameter || carried.node == 0) return true;
  const Shape carry = body_[carried.instruction].shape;
  if (!same_shape(body_.shape_of(carried), body_[copy].shape) || !carry.is_flat_tuple() ||
      body_[body_.root().instruction].opcode != Opcode::kTuple)
    return true;
  const std::uint32_t element = carry.path(carried.node)[0];
  const Operand next = behind_renamings(body_, body_.operands(body_.root().instruction)[element]);
  return !is_made_anew(next) || !all_read_before({copy, 0}, next.instruction, copy) ||
         !all_read_before(carried, next.instruction, copy);
}

}  // namespace

Program drop_copies(const Program& program, const Schedule& schedule) {
  ProgramEditor editor(program);
  for (const ComputationId caller : ids(program.computations)) {
    if (schedule.order[caller].empty()) continue;
    for (const InstructionIndex i : program[caller].instructions()) {
      if (program[caller][i].opcode != Opcode::kWhile) continue;
      const ComputationId id = body_of(program, {caller, i});
      const Body body(program, id, schedule.order[id]);
      for (const InstructionIndex copy : program[id].instructions()) {
        if (program[id][copy].opcode != Opcode::kCopy || body.needs(copy)) continue;
        ComputationEditor::Node& node = editor.edit(id)[copy.index];
        node.instruction.opcode = Opcode::kBitcast;
        node.instruction.opcode_text = opcode_name(Opcode::kBitcast);
      }
    }
  }
  return editor.finish();
}

}  // namespace spillway
