#include "sim/rewrite/fusion_parts.h"

#include <algorithm>

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;

ComputationEditor::Node make_parameter(std::uint32_t number, Shape shape, RewriteStorage& storage) {
  ComputationEditor::Node node;
  node.instruction.name = storage.text("handed_in." + std::to_string(number));
  node.instruction.opcode = Opcode::kParameter;
  node.instruction.opcode_text = opcode_name(Opcode::kParameter);
  node.instruction.shape = shape;
  node.instruction.literal = storage.text(std::to_string(number));
  return node;
}

/// Turns an instruction into a bitcast of `source`.
void become_bitcast(ComputationEditor& editor, Handle handle, Handle source) {
  ComputationEditor::Node& node = editor[handle];
  node.instruction.opcode = Opcode::kBitcast;
  node.instruction.opcode_text = opcode_name(Opcode::kBitcast);
  node.operands = {{source, 0}};
  node.called.clear();
  node.attributes.clear();
}

}  // namespace

FusionPart cut_fusion(const Computation& inner, Operand root, const std::vector<Cut>& cuts,
                      std::string_view name, const std::shared_ptr<RewriteStorage>& storage) {
  ComputationEditor editor(inner);
  editor.set_root({root.instruction.index, root.node});
  std::vector<Handle> handed_in;
  for (const Cut& cut : cuts) {
    const Handle parameter = editor.add(make_parameter(0, cut.shape, *storage));
    editor.move_to_top(parameter);
    handed_in.push_back(parameter);
    for (const InstructionIndex i : cut.instructions) become_bitcast(editor, i.index, parameter);
  }
  editor.drop_dead();
  // Parameters that nothing reads any more are dropped, the others numbered anew.
  FusionPart part;
  std::uint32_t next = 0;
  for (std::uint32_t number = 0; number < inner.parameters().size(); ++number) {
    const Handle handle = inner.parameters()[number].index;
    const bool is_root = editor.root().handle == handle;
    if (!is_root && editor.users(handle).empty()) {
      editor.erase(handle);
      continue;
    }
    editor[handle].instruction.literal = storage->text(std::to_string(next++));
    part.parameters.push_back(number);
  }
  for (const Handle handle : handed_in)
    editor[handle].instruction.literal = storage->text(std::to_string(next++));
  part.computation = editor.finish(storage->text(std::string(name)), storage);
  return part;
}

std::shared_ptr<const Computation> move_parameters(const Computation& inner,
                                                   const std::vector<std::uint32_t>& parameters,
                                                   MemorySpace space,
                                                   const std::shared_ptr<RewriteStorage>& storage) {
  ComputationEditor editor(inner);
  std::vector<bool> moved(inner.size(), false);
  for (const std::uint32_t number : parameters) moved[inner.parameters()[number].index] = true;
  for (const InstructionIndex i : inner.instructions()) {
    const Opcode opcode = inner[i].opcode;
    const bool keeps_place = opcode == Opcode::kBitcast || opcode == Opcode::kReshape ||
                             opcode == Opcode::kDynamicUpdateSlice;
    if (keeps_place && moved[inner.operands(i)[0].instruction.index]) moved[i.index] = true;
    if (opcode == Opcode::kTuple) {
      std::vector<ShapeNodeIndex> nodes;
      for (std::uint32_t k = 0; k < inner.operands(i).size(); ++k)
        if (moved[inner.operands(i)[k].instruction.index])
          nodes.push_back(inner[i].shape.element_node(k));
      if (!nodes.empty())
        editor[i.index].instruction.shape = with_space(inner[i].shape, nodes, space, *storage);
    } else if (moved[i.index]) {
      editor[i.index].instruction.shape = with_space(inner[i].shape, {0}, space, *storage);
    }
  }
  return editor.finish(inner.name(), storage);
}

}  // namespace spillway
