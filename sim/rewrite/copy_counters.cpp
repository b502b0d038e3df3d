#include "sim/rewrite/copy_counters.h"

#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;

/// Whether something reads an element of the carry that is no copy, beyond handing it on.
bool is_read_in_place(const Computation& body, Operand element) {
  for (const Use& use : body.uses(element.instruction)) {
    const Operand read = body.operands(use.user)[use.operand_number];
    if (read.node == element.node && use.user != body.root().instruction &&
        body[use.user].opcode != Opcode::kCopy)
      return true;
  }
  return false;
}

}  // namespace

Program copy_counters(const Program& program) {
  ProgramEditor editor(program);
  const Multiplicity reached = multiplicity(program, is_control_flow);
  for (const ComputationId id : ids(program.computations)) {
    if (reached.runs[id] == 0) continue;
    for (const InstructionIndex i : program[id].instructions()) {
      if (program[id][i].opcode != Opcode::kWhile) continue;
      const InstructionId loop{id, i};
      const auto counter = find_counter(program, loop);
      if (!counter) continue;
      const ComputationId body_id = body_of(program, loop);
      const Computation& body = program[body_id];
      const Operand element{body.parameters()[0], counter->node};
      if (!is_read_in_place(body, element)) continue;
      ComputationEditor& edited = editor.edit(body_id);
      const Reference carried{element.instruction.index, element.node};
      ComputationEditor::Node node =
          make_node(editor.text("copy.counter." + std::string(body.name())), Opcode::kCopy,
                    body.shape_of(element));
      node.operands = {carried};
      const Handle copy = edited.add(std::move(node));
      edited.move_after(copy, carried.handle);
      edited.redirect(carried, {copy, 0}, copy);
    }
  }
  return editor.finish();
}

}  // namespace spillway
