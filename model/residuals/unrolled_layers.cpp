#include "model/residuals/unrolled_layers.h"

#include <algorithm>
#include <set>

#include "model/program/host_transfer.h"

namespace spillway {
namespace {

class LayerFinder {
 public:
  LayerFinder(const Program& program, const StepParts& parts,
              const std::vector<CrossingGroup>& groups, UnrolledTable& table)
      : program_(program),
        entry_(program.entry_computation()),
        parts_(parts),
        groups_(groups),
        count_(static_cast<std::uint32_t>(groups.front().layers.size())),
        sets_(program),
        layer_of_(table.layer_of),
        layers_(table.layers) {}

  void run() {
    find_parameter_layers();
    sort_into_layers();
    layers_.resize(count_);
    for (std::uint32_t layer = 0; layer < count_; ++layer) find_barrier(layer);
  }

 private:
  void find_parameter_layers();
  void sort_into_layers();
  void find_barrier(std::uint32_t layer);
  std::optional<std::uint32_t> layer_behind(Operand value) const;
  bool is_of(InstructionIndex i, std::uint32_t layer) const {
    return parts_.is_checkpointed(i) && layer_of_[i.index] == layer;
  }
  bool runs_of(InstructionIndex i, std::uint32_t layer) const {
    return is_of(i, layer) && !is_free(entry_[i]);
  }

  const Program& program_;
  const Computation& entry_;
  const StepParts& parts_;
  const std::vector<CrossingGroup>& groups_;
  const std::uint32_t count_;
  ParameterSets sets_;
  std::map<std::uint32_t, std::uint32_t> layer_of_parameter_;  ///< of those that one layer reads
  std::map<Operand, std::uint32_t> layer_of_value_;            ///< of what crosses
  std::vector<std::optional<std::uint32_t>>& layer_of_;
  std::vector<UnrolledLayer>& layers_;
};

void LayerFinder::find_parameter_layers() {
  for (const CrossingGroup& group : groups_)
    for (std::uint32_t layer = 0; layer < count_; ++layer)
      layer_of_value_[group.layers[layer]] = layer;
  const auto forward = forward_layers(program_, parts_, groups_.front().layers);
  std::set<std::uint32_t> shared;
  for (const InstructionIndex i : entry_.instructions()) {
    const auto layer = forward[i.index];
    if (!layer || parts_.part(i) != StepPart::kForward) continue;
    for (const Operand& operand : entry_.operands(i)) {
      if (forward[operand.instruction.index]) continue;
      for (const std::uint32_t number : sets_.of(operand)) {
        const auto [found, fresh] = layer_of_parameter_.try_emplace(number, *layer);
        if (!fresh && found->second != *layer) shared.insert(number);
      }
    }
  }
  for (const std::uint32_t number : shared) layer_of_parameter_.erase(number);
}

/// Of what an instruction reads; empty for what belongs to no layer or to several.
std::optional<std::uint32_t> LayerFinder::layer_behind(Operand value) const {
  value = parts_.behind_copies(value);
  const Instruction& made_by = entry_[value.instruction];
  if (made_by.opcode == Opcode::kParameter) {
    const auto found = layer_of_parameter_.find(parameter_number(made_by));
    return found == layer_of_parameter_.end() ? std::nullopt : std::optional(found->second);
  }
  if (parts_.part(value.instruction) == StepPart::kForward) {
    const auto found = layer_of_value_.find(value);
    return found == layer_of_value_.end() ? std::nullopt : std::optional(found->second);
  }
  return layer_of_[value.instruction.index];
}

void LayerFinder::sort_into_layers() {
  layer_of_.assign(entry_.size(), std::nullopt);
  for (const InstructionIndex i : entry_.instructions()) {
    if (parts_.part(i) != StepPart::kBackward || parts_.hands_on(i)) continue;
    std::optional<std::uint32_t> layer;
    for (const Operand& operand : entry_.operands(i))
      if (const auto of = layer_behind(operand); of && (!layer || *of < *layer)) layer = of;
    // The loss, and what else is no part of a layer.
    if (!parts_.is_checkpointed(i)) layer = count_;
    layer_of_[i.index] = layer;
  }
  // What reads nothing of its own (tables of positions) belongs to those who read it.
  for (std::size_t k = entry_.size(); k-- > 0;) {
    const InstructionIndex i(k);
    if (layer_of_[k] || !parts_.is_checkpointed(i) || parts_.hands_on(i)) continue;
    std::vector<InstructionIndex> names = {i};
    for (std::size_t n = 0; n < names.size(); ++n)
      for (const Use& use : entry_.uses(names[n])) {
        if (parts_.hands_on(use.user)) names.push_back(use.user);
        layer_of_[k] = std::max(layer_of_[k], layer_of_[use.user.index]);
      }
  }
}

/// A gradient arrives that the layer reads and a later layer has made, before anything of the layer
/// runs. It is as large as the layer's input, of which it is the gradient.
void LayerFinder::find_barrier(std::uint32_t layer) {
  const std::int64_t elements = entry_.shape_of(groups_.front().layers[layer]).elements();
  std::optional<InstructionIndex> begins;
  std::set<InstructionIndex> arrive, as_large;
  UnrolledLayer& out = layers_[layer];
  for (const InstructionIndex i : entry_.instructions()) {
    if (!runs_of(i, layer)) continue;
    if (!begins) begins = i;
    bool is_first = true;
    for (const Operand& read : entry_.operands(i)) {
      const Operand value = parts_.behind_copies(read);
      if (is_of(value.instruction, layer)) {
        is_first = false;
        continue;
      }
      const auto from = layer_of_[value.instruction.index];
      if (!from || *from <= layer || value.instruction > *begins) continue;
      arrive.insert(value.instruction);
      if (entry_.shape_of(value).is_array() && entry_.shape_of(value).elements() == elements)
        as_large.insert(value.instruction);
    }
    if (is_first) out.first.push_back(i);
  }
  const auto& gradients = as_large.empty() ? arrive : as_large;
  out.gradients.assign(gradients.begin(), gradients.end());
}

}  // namespace

void find_backward_layers(const Program& program, const StepParts& parts,
                          const std::vector<CrossingGroup>& groups, UnrolledTable& table) {
  LayerFinder(program, parts, groups, table).run();
}

}  // namespace spillway
