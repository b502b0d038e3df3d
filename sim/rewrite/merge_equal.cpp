#include "sim/rewrite/merge_equal.h"

#include <algorithm>
#include <map>

#include "model/program/call_graph.h"
#include "sim/rewrite/program_editor.h"
#include "sim/rewrite/value_keys.h"

namespace spillway {
namespace {

using Reference = ComputationEditor::Reference;

/// What only names, groups or begins a value is not worth keeping instead of another.
bool makes_a_value(Opcode opcode) {
  return opcode != Opcode::kParameter && opcode != Opcode::kConstant &&
         opcode != Opcode::kBitcast && opcode != Opcode::kTuple && !is_async_start(opcode);
}

bool same_layout(Shape a, Shape b) {
  return a.type() == b.type() && a.space() == b.space() && std::ranges::equal(a.dims(), b.dims()) &&
         std::ranges::equal(a.minor_to_major(), b.minor_to_major());
}

}  // namespace

Program merge_equal(const Program& program, InstructionId loop,
                    const std::function<bool(const Instruction&)>& added) {
  const ValueKeys keys(program, loop);
  const ComputationId id = body_of(program, loop);
  const Computation& body = program[id];
  ProgramEditor editor(program);
  std::map<ValueKey, Operand> first;
  for (const InstructionIndex i : body.instructions()) {
    if (!makes_a_value(body[i].opcode)) continue;
    for (ShapeNodeIndex node = 0; node < body[i].shape.node_count(); ++node) {
      const Shape shape = body[i].shape.at(node);
      if (!shape.is_array()) continue;
      const Operand here{i, node};
      const auto [found, fresh] = first.try_emplace(keys[here], here);
      if (fresh) continue;
      const Operand kept = found->second;
      if (!added(body[i]) && !added(body[kept.instruction])) continue;
      const Shape other = body.shape_of(kept);
      if (other.space() != shape.space() || other.bytes() != shape.bytes()) continue;
      ComputationEditor& edited = editor.edit(id);
      Reference to{kept.instruction.index, kept.node};
      if (!same_layout(other, shape)) {
        ComputationEditor::Node renaming =
            make_node(editor.text("renamed." + std::string(body[i].name)), Opcode::kBitcast, shape);
        renaming.operands = {to};
        to = {edited.add(std::move(renaming)), 0};
        edited.move_after(to.handle, kept.instruction.index);
      }
      edited.redirect({i.index, node}, to);
    }
  }
  return editor.finish();
}

}  // namespace spillway
