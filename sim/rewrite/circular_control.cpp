#include "sim/rewrite/circular_control.h"

#include <algorithm>
#include <string>

#include "model/program/control_predecessors.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {

Program without_circular_control(const Program& program, ComputationId id) {
  const Computation& computation = program[id];
  ControlPredecessors predecessors(computation);
  ProgramEditor editor(program);
  bool changes = false;
  for (const InstructionIndex i : computation.instructions()) {
    const std::vector<InstructionIndex> all = predecessors.of(i);
    const auto stands_later = [i](InstructionIndex before) { return before.index >= i.index; };
    if (std::ranges::none_of(all, stands_later)) continue;
    changes = true;
    ComputationEditor::Node& node = editor.edit(id)[i.index];
    std::erase_if(node.attributes, [](const Attribute& attribute) {
      return attribute.name == kControlPredecessors;
    });
    for (const InstructionIndex before : all)
      if (!stands_later(before))
        add_control_predecessors(editor, node, "%" + std::string(computation[before].name));
  }
  return changes ? editor.finish() : program;
}

}  // namespace spillway
