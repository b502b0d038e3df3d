#include "sim/rewrite/fusion_parts.h"

#include <algorithm>

#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;

/// Whether two slices take the same place: what they slice may differ by renamings alone.
bool same_slice(const Computation& fused, InstructionIndex a, InstructionIndex b) {
  const auto starts_of = [&fused](InstructionIndex i) { return fused.operands(i).subspan(1); };
  return fused[a].opcode == fused[b].opcode && same_shape(fused[a].shape, fused[b].shape) &&
         std::ranges::equal(starts_of(a), starts_of(b)) &&
         fused.attribute(a, "slice") == fused.attribute(b, "slice");
}

/// What the results of a fusion are computed with. What only says where a slice begins is not: it
/// goes when the slice does.
std::vector<bool> computed_with(const Computation& fused) {
  std::vector<bool> used(fused.size(), false);
  used[fused.root().instruction.index] = true;
  for (std::size_t k = fused.size(); k-- > 0;) {
    if (!used[k]) continue;
    const InstructionIndex i(k);
    auto operands = fused.operands(i);
    if (fused[i].opcode == Opcode::kDynamicSlice) operands = operands.first(1);
    if (fused[i].opcode == Opcode::kDynamicUpdateSlice) operands = operands.first(2);
    for (const Operand& operand : operands) used[operand.instruction.index] = true;
  }
  return used;
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
    const std::string_view called = storage->text("handed_in." + std::to_string(handed_in.size()));
    const Handle parameter = editor.add(make_parameter(called, 0, cut.shape, *storage));
    for (const InstructionIndex i : cut.instructions) become_bitcast(editor, i.index, parameter);
    editor.move_to_top(parameter);
    handed_in.push_back(parameter);
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

FusionPart drop_output(const Computation& inner, std::uint32_t output, std::string_view name,
                       const std::shared_ptr<RewriteStorage>& storage) {
  ComputationEditor editor(inner);
  ComputationEditor::Node& tuple = editor[inner.root().instruction.index];
  check(tuple.instruction.opcode == Opcode::kTuple && output < tuple.operands.size(),
        "a fusion has no such output to drop");
  tuple.operands.erase(tuple.operands.begin() + output);
  if (tuple.operands.size() == 1) {
    editor.set_root(tuple.operands[0]);
  } else {
    std::vector<Shape> shapes;
    for (const ComputationEditor::Reference& element : tuple.operands)
      shapes.push_back(editor.shape_of(element));
    tuple.instruction.shape = make_tuple_shape(shapes, *storage);
  }
  editor.drop_dead();
  const auto rest = editor.finish(storage->text(std::string(name)), storage);
  return cut_fusion(*rest, rest->root(), {}, name, storage);
}

std::shared_ptr<const Computation> compute_parameter(
    const Computation& inner, std::uint32_t parameter, const Computation& slice,
    std::string_view name, const std::shared_ptr<RewriteStorage>& storage) {
  ComputationEditor editor(inner);
  std::uint32_t next = 0;
  for (std::uint32_t k = 0; k < inner.parameters().size(); ++k)
    if (k != parameter)
      editor[inner.parameters()[k].index].instruction.literal =
          storage->text(std::to_string(next++));
  // A copy of each instruction of `slice`, in front of all that may read it.
  std::vector<Handle> copies;
  for (const InstructionIndex i : slice.instructions()) {
    ComputationEditor::Node copy{slice[i], {}, {}, {}, false};
    copy.instruction.name = storage->text("sliced." + std::string(slice[i].name));
    for (const Operand& operand : slice.operands(i))
      copy.operands.push_back({copies[operand.instruction.index], operand.node});
    copy.attributes.assign(slice.attributes(i).begin(), slice.attributes(i).end());
    copies.push_back(editor.add(std::move(copy)));
  }
  for (const InstructionIndex i : slice.parameters())
    editor[copies[i.index]].instruction.literal = storage->text(std::to_string(next++));
  const Handle stood = inner.parameters()[parameter].index;
  become_bitcast(editor, stood, copies[slice.root().instruction.index]);
  editor.move_to_top(stood);
  for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy) editor.move_to_top(*copy);
  return editor.finish(storage->text(std::string(name)), storage);
}

std::optional<FusedUpdate> find_update(const Computation& fused, std::uint32_t parameter) {
  const Operand root = fused.root();
  std::vector<Operand> outputs = {root};
  if (fused[root.instruction].opcode == Opcode::kTuple)
    outputs.assign(fused.operands(root.instruction).begin(),
                   fused.operands(root.instruction).end());
  for (std::uint32_t output = 0; output < outputs.size(); ++output) {
    const InstructionIndex at = behind_renamings(fused, outputs[output]).instruction;
    if (fused[at].opcode != Opcode::kDynamicUpdateSlice) continue;
    const auto operands = fused.operands(at);
    if (find_parameter(fused, operands[0]) == parameter && operands[1].node == 0)
      return FusedUpdate{output, at};
  }
  return std::nullopt;
}

std::vector<InstructionIndex> find_slices(const Computation& fused, std::uint32_t parameter) {
  std::vector<InstructionIndex> slices;
  std::vector<InstructionIndex> renamed = {fused.parameters()[parameter]};
  for (std::size_t n = 0; n < renamed.size(); ++n)
    for (const Use& use : fused.uses(renamed[n])) {
      const Opcode opcode = fused[use.user].opcode;
      const bool slice = opcode == Opcode::kDynamicSlice || opcode == Opcode::kSlice;
      if (is_renaming(opcode))
        renamed.push_back(use.user);
      else if (slice && use.operand_number == 0)
        slices.push_back(use.user);
      else
        return {};
    }
  for (const InstructionIndex slice : slices)
    if (!same_slice(fused, slice, slices[0])) return {};
  const std::vector<bool> used = computed_with(fused);
  const auto is_used = [&used](InstructionIndex slice) { return used[slice.index]; };
  if (std::ranges::none_of(slices, is_used)) slices.clear();
  return slices;
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
    const bool keeps_place = is_renaming(opcode) || opcode == Opcode::kDynamicUpdateSlice;
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
