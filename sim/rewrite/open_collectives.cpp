#include "sim/rewrite/open_collectives.h"

#include "model/program/call_graph.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Node = ComputationEditor::Node;

/// The collective alone, with parameters for its operands.
ComputationId wrap(ProgramEditor& program, const Node& collective,
                   const std::vector<Shape>& operands) {
  ComputationEditor wrapper;
  Node inner = collective;
  inner.instruction.name = program.text("wrapped." + std::string(collective.instruction.name));
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    const Handle parameter = wrapper.add(make_parameter(program.text("param_" + std::to_string(k)),
                                                        k, operands[k], *program.storage()));
    inner.operands[k] = {parameter, 0};
  }
  wrapper.set_root({wrapper.add(std::move(inner)), 0});
  const std::string name = "async_computation." + std::string(collective.instruction.name);
  return program.add(wrapper.finish(program.text(name), program.storage()));
}

void open(ProgramEditor& program, ComputationId id, Handle handle) {
  ComputationEditor& editor = program.edit(id);
  RewriteStorage& storage = *program.storage();
  const Node collective = editor[handle];
  std::vector<Shape> shapes;
  for (const auto& operand : collective.operands) shapes.push_back(editor.shape_of(operand));
  Node start = make_node(
      program.text(std::string(collective.instruction.name) + ".start"), Opcode::kAsyncStart,
      make_tuple_shape({make_tuple_shape(shapes, storage), collective.instruction.shape}, storage));
  start.operands = collective.operands;
  start.called = {wrap(program, collective, shapes)};
  const Handle start_handle = editor.add(std::move(start));
  editor.move_before(start_handle, handle);
  Node& done = editor[handle];
  done = make_node(collective.instruction.name, Opcode::kAsyncDone, collective.instruction.shape);
  done.operands = {{start_handle, 0}};
}

}  // namespace

Program open_collectives(const Program& program) {
  ProgramEditor editor(program);
  const Multiplicity reached = multiplicity(program, is_control_flow);
  for (const ComputationId id : ids(program.computations)) {
    if (reached.runs[id] == 0) continue;
    for (const InstructionIndex i : program[id].instructions())
      if (is_collective(program[id][i].opcode)) open(editor, id, i.index);
  }
  return editor.finish();
}

}  // namespace spillway
