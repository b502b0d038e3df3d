#include "sim/rewrite/program_editor.h"

namespace spillway {

ComputationEditor& ProgramEditor::edit(ComputationId id) {
  const auto found = editors_.find(id);
  if (found != editors_.end()) return found->second;
  return editors_.emplace(id, ComputationEditor(original_[id])).first->second;
}

std::string ProgramEditor::find_misorder() const {
  for (const auto& [id, editor] : editors_)
    if (std::string wrong = editor.find_misorder(); !wrong.empty()) return wrong;
  return "";
}

Program ProgramEditor::finish() {
  for (const auto& [id, editor] : editors_)
    out_.computations[id] = editor.finish(original_[id].name(), storage_);
  return std::move(out_);
}

ComputationEditor::Node make_node(std::string_view name, Opcode opcode, Shape shape) {
  ComputationEditor::Node node;
  node.instruction.name = name;
  node.instruction.opcode = opcode;
  node.instruction.opcode_text = opcode_name(opcode);
  node.instruction.shape = shape;
  return node;
}

ComputationEditor::Node make_parameter(std::string_view name, std::uint32_t number, Shape shape,
                                       RewriteStorage& storage) {
  ComputationEditor::Node node = make_node(name, Opcode::kParameter, shape);
  node.instruction.literal = storage.text(std::to_string(number));
  return node;
}

}  // namespace spillway
