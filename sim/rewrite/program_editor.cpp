#include "sim/rewrite/program_editor.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/program/control_predecessors.h"

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

ComputationEditor::Reference add_bitcast(ProgramEditor& program, ComputationEditor& computation,
                                         std::string name, ComputationEditor::Reference value,
                                         Shape shape) {
  name += kRenamedSuffix;
  ComputationEditor::Node node = make_node(program.text(std::move(name)), Opcode::kBitcast, shape);
  node.operands = {value};
  return {computation.add(std::move(node)), 0};
}

void add_control_predecessors(ProgramEditor& program, ComputationEditor::Node& node,
                              std::string_view names) {
  const auto own = std::ranges::find(node.attributes, kControlPredecessors, &Attribute::name);
  if (own == node.attributes.end()) {
    node.attributes.push_back({kControlPredecessors, program.text(fmt::format("{{{}}}", names))});
    return;
  }
  const std::string_view inside = own->value.substr(1, own->value.size() - 2);
  own->value = program.text(fmt::format("{{{}, {}}}", inside, names));
}

ComputationEditor::Handle add_copy(ProgramEditor& program, ComputationEditor& computation,
                                   const std::string& name, ComputationEditor::Reference from,
                                   MemorySpace space) {
  RewriteStorage& storage = *program.storage();
  const Shape source = computation.shape_of(from);
  const Shape result = with_space(source, {0}, space, storage);
  ComputationEditor::Node start =
      make_node(program.text(name + "start"), Opcode::kCopyStart,
                make_tuple_shape({result, source, make_context_shape(storage)}, storage));
  start.operands = {from};
  ComputationEditor::Node done = make_node(program.text(name + "done"), Opcode::kCopyDone, result);
  done.operands = {{computation.add(std::move(start)), 0}};
  return computation.add(std::move(done));
}

}  // namespace spillway
