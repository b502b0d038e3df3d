#include "sim/rewrite/open_collectives.h"

#include "model/program/call_graph.h"
#include "model/program/control_predecessors.h"
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
  std::erase_if(inner.attributes, [](const Attribute& attribute) {
    return attribute.name == kControlPredecessors;  // they stay outside
  });
  inner.instruction.name = program.text("wrapped." + std::string(collective.instruction.name));
  std::erase_if(inner.attributes, [](const Attribute& attribute) {
    return attribute.name == kControlPredecessors;  // the start has them
  });
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    const Handle parameter = wrapper.add(make_parameter(program.text("param_" + std::to_string(k)),
                                                        k, operands[k], *program.storage()));
    inner.operands[k] = {parameter, 0};
  }
  wrapper.set_root({wrapper.add(std::move(inner)), 0});
  const std::string name = "async_computation." + std::string(collective.instruction.name);
  return program.add(wrapper.finish(program.text(name), program.storage()));
}

/// What XLA hands on from a collective to its start and its done: whose line it is, hints for the
/// scheduler; and to the start alone, what must run before. What must run after names the done.
std::vector<Attribute> handed_on(const Node& collective, Opcode to) {
  std::vector<Attribute> kept;
  for (const Attribute& attribute : collective.attributes)
    if (attribute.name == "metadata" || attribute.name == "frontend_attributes" ||
        (attribute.name == kControlPredecessors && to == Opcode::kAsyncStart))
      kept.push_back(attribute);
  return kept;
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
  start.attributes = handed_on(collective, Opcode::kAsyncStart);
  const Handle start_handle = editor.add(std::move(start));
  editor.move_before(start_handle, handle);
  for (const Attribute& attribute : collective.attributes)
    if (attribute.name == kControlPredecessors)
      editor[start_handle].attributes.push_back(attribute);
  Node& done = editor[handle];
  done = make_node(collective.instruction.name, Opcode::kAsyncDone, collective.instruction.shape);
  done.operands = {{start_handle, 0}};
  done.attributes = handed_on(collective, Opcode::kAsyncDone);
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
