#include "sim/rewrite/unrolled.h"

#include <algorithm>

#include "model/program/host_transfer.h"
#include "model/residuals/crossing_values.h"
#include "sim/rewrite/circular_control.h"
#include "sim/rewrite/clone_called.h"
#include "sim/rewrite/drop_dead.h"
#include "sim/rewrite/recompute.h"

namespace spillway {

using NodeHandle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;
using Read = UnrolledValue::Read;

namespace {

Reference to_reference(Operand operand) { return {operand.instruction.index, operand.node}; }

/// The metadata of something of the forward part, computed again: what JAX writes there.
std::string rematted(std::string_view metadata) {
  const std::size_t begin = metadata.find("op_name=\"");
  if (begin == std::string_view::npos)
    return "{op_name=\"transpose(jvp())/checkpoint/rematted_computation\"}";
  const std::size_t from = begin + 9;
  const std::size_t to = metadata.find('"', from);
  const std::string_view name = metadata.substr(from, to - from);
  const std::size_t slash = name.rfind('/');
  const std::string_view operation =
      slash == std::string_view::npos ? name : name.substr(slash + 1);
  return std::string(metadata.substr(0, from)) +
         "transpose(jvp())/checkpoint/rematted_computation/" + std::string(operation) +
         std::string(metadata.substr(std::min(to, metadata.size())));
}

}  // namespace

/// One rewrite under way.
class UnrolledEdit {
 public:
  UnrolledEdit(const UnrolledRewrite& rewrite, const std::vector<UnrolledChange>& changes)
      : rewrite_(rewrite),
        program_(rewrite.program_),
        entry_(rewrite.program_.entry_computation()),
        table_(rewrite.table_),
        out_(rewrite.program_),
        editor_(out_.edit(rewrite.program_.entry)),
        clones_(table_.layers.size()),
        fences_(table_.layers.size()) {
    for (const UnrolledChange& change : changes)
      choice_[{change.residual, change.layer}] = change.choice;
  }

  Program run() {
    bypass_tuples();
    for (const auto& [which, choice] : choice_)
      if (choice != Choice::kRecompute) place(which, choice);
    for (const auto& [which, choice] : choice_)
      if (choice == Choice::kRecompute)
        redirect(value_of(which),
                 computed_again(to_reference(value_of(which).value), which.second));
    editor_.sort_by_operands();
    fence();
    return drop_dead(out_.finish());
  }

 private:
  using Which = std::pair<UnrolledId, std::uint32_t>;
  /// What the barrier of a layer gets: copies it waits for, and what waits for it.
  struct Fence {
    std::vector<NodeHandle> before, after;
    bool is_touched = false;
  };

  const UnrolledValue& value_of(Which which) const {
    return table_.residuals[which.first].layers[which.second];
  }
  bool is_recomputed(Which which) const {
    const auto found = choice_.find(which);
    return found != choice_.end() && found->second == Choice::kRecompute;
  }

  void bypass_tuples();
  void place(Which which, Choice choice);
  void redirect(const UnrolledValue& value, Reference to);
  Reference renamed(Reference value, Shape shape);
  Reference backward_value(Which which);
  Reference computed_again(Reference forward, std::uint32_t layer);
  std::optional<Reference> known(Operand forward, std::uint32_t layer);
  bool is_behind_recomputed(Operand known, Operand forward, std::uint32_t layer) const;
  std::set<InstructionIndex> forward_ancestors(Operand of) const;
  Reference clone(NodeHandle handle, std::uint32_t layer);
  void fence();

  const UnrolledRewrite& rewrite_;
  const Program& program_;
  const Computation& entry_;
  const UnrolledTable& table_;
  ProgramEditor out_;
  ComputationEditor& editor_;
  std::map<Which, Choice> choice_;
  std::map<Which, Reference> reloaded_;
  std::vector<std::map<NodeHandle, NodeHandle>> clones_;  ///< of each layer
  std::map<std::pair<NodeHandle, ShapeNodeIndex>, std::vector<Reference>> renamings_;
  std::vector<Fence> fences_;
};

/// What is read through a tuple is read itself: else the tuple would still show what is moved.
void UnrolledEdit::bypass_tuples() {
  for (const InstructionIndex i : entry_.instructions()) {
    if (entry_[i].opcode != Opcode::kTuple || !rewrite_.parts_.hands_on(i)) continue;
    const auto elements = editor_[i.index].operands;
    for (std::uint32_t k = 0; k < elements.size(); ++k)
      editor_.redirect({i.index, entry_[i].shape.element_node(k)}, elements[k]);
  }
}

/// Kept in HBM, or copied to the host and back.
void UnrolledEdit::place(Which which, Choice choice) {
  const UnrolledResidual& residual = table_.residuals[which.first];
  const bool to_host = choice == Choice::kOffload;
  fences_[which.second].is_touched = true;
  if (to_host == (residual.placement == Placement::kPinnedHost)) return;
  const UnrolledValue& value = value_of(which);
  const Reference made = to_reference(value.value);
  if (!to_host) return redirect(value, made);
  const std::string name = residual.id + "." + std::to_string(which.second);
  const Reference saved{
      add_copy(out_, editor_, "offload." + name + ".", made, MemorySpace::kPinnedHost), 0};
  editor_.move_after(saved.handle, made.handle);
  editor_.move_before(editor_[saved.handle].operands[0].handle, saved.handle);
  reloaded_[which] = {add_copy(out_, editor_, "reload." + name + ".", saved, MemorySpace::kDevice),
                      0};
  redirect(value, reloaded_[which]);
  fences_[which.second].before.push_back(saved.handle);
  fences_[which.second].after.push_back(editor_[reloaded_[which].handle].operands[0].handle);
}

/// Those of the backward part that read a value read another one that is the same.
void UnrolledEdit::redirect(const UnrolledValue& value, Reference to) {
  for (const Read& read : value.reads) {
    Reference& operand = editor_[read.reader.index].operands[read.operand];
    operand = renamed(to, entry_.shape_of(entry_.operands(read.reader)[read.operand]));
  }
}

Reference UnrolledEdit::renamed(Reference value, Shape shape) {
  const auto same = [shape](Shape other) {
    return std::ranges::equal(shape.dims(), other.dims()) &&
           std::ranges::equal(shape.minor_to_major(), other.minor_to_major());
  };
  if (same(editor_.shape_of(value))) return value;
  auto& renamings = renamings_[{value.handle, value.node}];
  for (const Reference& known : renamings)
    if (same(editor_.shape_of(known))) return known;
  renamings.push_back(add_bitcast(
      out_, editor_,
      std::string(editor_[value.handle].instruction.name) + "." + std::to_string(renamings.size()),
      value, shape));
  return renamings.back();
}

/// Where the backward part finds what stays saved.
Reference UnrolledEdit::backward_value(Which which) {
  const auto fresh = reloaded_.find(which);
  if (fresh != reloaded_.end()) return fresh->second;
  const UnrolledValue& value = value_of(which);
  const auto chosen = choice_.find(which);
  const bool on_host = table_.residuals[which.first].placement == Placement::kPinnedHost;
  if (!on_host || (chosen != choice_.end() && chosen->second == Choice::kKeep))
    return to_reference(value.value);
  // Behind the renamings of what a reader reads: the done that brings it back.
  Operand at = entry_.operands(value.reads.front().reader)[value.reads.front().operand];
  while (is_renaming(entry_[at.instruction].opcode) ||
         entry_[at.instruction].opcode == Opcode::kTuple)
    at = entry_.operands(at.instruction)[at.node == 0 ? 0 : at.node - 1];
  return to_reference(at);
}

/// A value of the forward part, in the backward part of a layer.
Reference UnrolledEdit::computed_again(Reference forward, std::uint32_t layer) {
  const Operand operand{InstructionIndex(forward.handle), forward.node};
  const Instruction& in = entry_[operand.instruction];
  if (in.opcode == Opcode::kParameter || in.opcode == Opcode::kConstant) return forward;
  const Shape shape = entry_.shape_of(operand);
  const auto saved = rewrite_.saved_.find(operand);
  if (saved != rewrite_.saved_.end() && !is_recomputed(saved->second))
    return renamed(backward_value(saved->second), shape);
  if (rewrite_.available_.contains(operand)) return forward;
  if (in.opcode == Opcode::kTuple && operand.node != 0)
    return computed_again(to_reference(entry_.operands(operand.instruction)[operand.node - 1]),
                          layer);
  if (const auto there = known(operand, layer)) return renamed(*there, shape);
  return {clone(forward.handle, layer).handle, forward.node};
}

/// The same, where the backward part of the layer computes it already, or it is saved under another
/// name.
std::optional<Reference> UnrolledEdit::known(Operand forward, std::uint32_t layer) {
  if (!entry_.shape_of(forward).is_array()) return std::nullopt;
  const auto& known = rewrite_.known_[layer];
  const auto found = known.find((*rewrite_.keys_)[forward]);
  if (found == known.end()) return std::nullopt;
  if (entry_.shape_of(found->second).bytes() != entry_.shape_of(forward).bytes())
    return std::nullopt;
  if (is_behind_recomputed(found->second, forward, layer)) return std::nullopt;
  return to_reference(found->second);
}

/// Whether what is known hangs on something recomputed that itself may hang on `forward`: a fusion
/// may compute both.
bool UnrolledEdit::is_behind_recomputed(Operand known, Operand forward, std::uint32_t layer) const {
  std::set<InstructionIndex> seen, earlier;
  std::vector<InstructionIndex> open = {known.instruction};
  while (!open.empty()) {
    const InstructionIndex at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    for (const Operand& read : entry_.operands(at)) {
      const Operand operand = rewrite_.parts_.behind_copies(read);
      const auto saved = rewrite_.saved_.find(operand);
      const bool stops = saved != rewrite_.saved_.end();
      if (stops && is_recomputed(saved->second)) {
        if (earlier.empty()) earlier = forward_ancestors(forward);
        if (saved->second.second != layer || !earlier.contains(operand.instruction)) return true;
      }
      if (!stops && table_.layer_of[operand.instruction.index] == layer)
        open.push_back(operand.instruction);
    }
  }
  return false;
}

std::set<InstructionIndex> UnrolledEdit::forward_ancestors(Operand of) const {
  std::set<InstructionIndex> seen;
  std::vector<InstructionIndex> open = {of.instruction};
  while (!open.empty()) {
    const InstructionIndex at = open.back();
    open.pop_back();
    for (const Operand& operand : entry_.operands(at)) {
      if (!seen.insert(operand.instruction).second) continue;
      const auto saved = rewrite_.saved_.find(operand);
      const bool is_input =
          saved != rewrite_.saved_.end() && table_.residuals[saved->second.first].is_layer_input;
      if (!is_input) open.push_back(operand.instruction);
    }
  }
  return seen;
}

Reference UnrolledEdit::clone(NodeHandle handle, std::uint32_t layer) {
  const auto known = clones_[layer].find(handle);
  if (known != clones_[layer].end()) return {known->second, 0};
  std::vector<Reference> operands;
  for (const Operand& operand : entry_.operands(InstructionIndex(handle)))
    operands.push_back(computed_again(to_reference(operand), layer));
  const std::string name = std::string(entry_[InstructionIndex(handle)].name) + ".layer" +
                           std::to_string(layer) + std::string(kRecomputedSuffix);
  Node node = clone_node(program_, out_, Node(editor_[handle]), name);
  node.operands = std::move(operands);
  const auto metadata = std::ranges::find(node.attributes, "metadata", &Attribute::name);
  if (metadata != node.attributes.end())
    metadata->value = out_.text(rematted(metadata->value));
  else
    node.attributes.push_back({"metadata", out_.text(rematted(""))});
  const bool is_free_node = is_free(node.instruction);
  const NodeHandle cloned = clones_[layer][handle] = editor_.add(std::move(node));
  fences_[layer].is_touched = true;
  if (!is_free_node) fences_[layer].after.push_back(cloned);
  return {cloned, 0};
}

/// The backward part of a layer waits for the gradients, and for the copies to the host.
void UnrolledEdit::fence() {
  for (std::uint32_t layer = 0; layer < fences_.size(); ++layer) {
    Fence& fence = fences_[layer];
    if (!fence.is_touched) continue;
    std::string names;
    const auto add = [&](NodeHandle handle) {
      names += (names.empty() ? "%" : ", %") + std::string(editor_[handle].instruction.name);
    };
    for (const InstructionIndex gradient : table_.layers[layer].gradients) add(gradient.index);
    for (const NodeHandle done : fence.before) add(done);
    if (names.empty()) continue;
    for (const InstructionIndex first : table_.layers[layer].first)
      fence.after.push_back(first.index);
    for (const NodeHandle handle : fence.after)
      add_control_predecessors(out_, editor_[handle], names);
  }
}

UnrolledRewrite::UnrolledRewrite(const Program& program, const UnrolledTable& table)
    : program_(program), table_(table), parts_(program) {
  if (table.residuals.empty()) return;
  keys_.emplace(program);
  for (const UnrolledId id : ids(table.residuals)) {
    const UnrolledResidual& residual = table.residuals[id];
    for (std::uint32_t layer = 0; layer < residual.layers.size(); ++layer)
      saved_[residual.layers[layer].value] = {id, layer};
  }
  find_known();
}

void UnrolledRewrite::find_known() {
  const Computation& entry = program_.entry_computation();
  const auto layers = static_cast<std::uint32_t>(table_.layers.size());
  known_.resize(layers);
  std::vector<char> hangs_on_gradient(entry.size(), 0);
  for (const InstructionIndex i : entry.instructions()) {
    for (const Operand& operand : entry.operands(i))
      if (hangs_on_gradient[operand.instruction.index]) hangs_on_gradient[i.index] = 1;
    const auto layer = table_.layer_of[i.index];
    if (layer == layers) hangs_on_gradient[i.index] = 1;
    const bool makes_values = !is_free(entry[i]) && !is_async_start(entry[i].opcode);
    for (ShapeNodeIndex node = 0; node < entry[i].shape.node_count(); ++node) {
      const Operand value{i, node};
      if (!entry.shape_of(value).is_array() || !makes_values) continue;
      if (parts_.part(i) == StepPart::kForward && !saved_.contains(value) &&
          !backward_reads(program_, parts_, value).empty())
        available_.insert(value);
      if (layer && *layer < layers && !hangs_on_gradient[i.index])
        known_[*layer].try_emplace((*keys_)[value], value);
    }
  }
}

std::string UnrolledRewrite::why_not_recomputed(UnrolledId residual) const {
  if (table_.residuals[residual].is_layer_input)
    return "it is the layer's input, which recomputation starts from and jax.checkpoint always "
           "saves";
  return "";
}

Program UnrolledRewrite::run(const std::vector<UnrolledChange>& changes) const {
  std::vector<UnrolledChange> possible;
  for (const UnrolledChange& change : changes)
    if (change.choice != Choice::kRecompute || why_not_recomputed(change.residual).empty())
      possible.push_back(change);
  if (possible.empty()) return program_;
  return without_circular_control(UnrolledEdit(*this, possible).run(), program_.entry);
}

}  // namespace spillway
