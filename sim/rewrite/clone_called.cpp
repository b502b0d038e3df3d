#include "sim/rewrite/clone_called.h"

#include <algorithm>

#include "model/program/control_predecessors.h"

namespace spillway {

ComputationId clone_called(const Program& program, ProgramEditor& out, ComputationId id) {
  const Computation& original = program[id];
  bool calls = false;
  for (const InstructionIndex i : original.instructions())
    calls |= runs_what_it_calls(original[i].opcode);
  if (!calls) return out.add(program.computations[id]);
  ComputationEditor copy(original);
  for (const InstructionIndex i : original.instructions())
    if (runs_what_it_calls(original[i].opcode))
      for (ComputationId& called : copy[i.index].called)
        called = clone_called(program, out, called);
  return out.add(copy.finish(original.name(), out.storage()));
}

ComputationEditor::Node clone_node(const Program& program, ProgramEditor& out,
                                   const ComputationEditor::Node& original, std::string name) {
  ComputationEditor::Node node = original;
  node.operands.clear();
  node.instruction.name = out.text(std::move(name));
  std::erase_if(node.attributes,
                [](const Attribute& attribute) { return attribute.name == kControlPredecessors; });
  if (is_control_flow(node.instruction.opcode) || is_async_start(node.instruction.opcode))
    for (ComputationId& called : node.called) called = clone_called(program, out, called);
  return node;
}

}  // namespace spillway
