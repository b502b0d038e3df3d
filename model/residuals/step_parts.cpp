#include "model/residuals/step_parts.h"

#include <algorithm>

#include "model/memory/flat_schedule.h"
#include "model/program/host_transfer.h"

namespace spillway {

StepParts::StepParts(const Program& program)
    : program_(program),
      entry_(program.entry_computation()),
      parts_(entry_.size(), StepPart::kForward),
      checkpointed_(entry_.size(), 0),
      is_forward_(entry_.size(), 0),
      has_name_(entry_.size(), 0) {
  read_names();
  hand_to_users();
  for (const InstructionIndex i : entry_.instructions()) {
    if (parts_[i.index] != StepPart::kForward || is_forward_[i.index] != 0) continue;
    for (const Operand& operand : entry_.operands(i))
      if (parts_[operand.instruction.index] != StepPart::kForward)
        parts_[i.index] = StepPart::kUpdate;
  }
}

void StepParts::read_names() {
  for (const InstructionIndex i : entry_.instructions()) {
    const std::string_view name = metadata_field(entry_, i, "op_name");
    const Opcode opcode = entry_[i].opcode;
    // Copies between memory spaces carry the name of what they wait for.
    if (name.empty() || hands_on(i) || opcode == Opcode::kConstant) continue;
    has_name_[i.index] = 1;
    if (name.find("transpose(") == std::string_view::npos) {
      is_forward_[i.index] = name.find("jvp(") != std::string_view::npos;
      continue;
    }
    parts_[i.index] = StepPart::kBackward;
    // remat2 is the name of the barrier, which what XLA moves behind it takes over.
    for (const char* mark : {"checkpoint", "rematted_computation", "/remat2"})
      if (name.find(mark) != std::string_view::npos) checkpointed_[i.index] = 1;
  }
}

/// What XLA has added without a name belongs to those who read it.
void StepParts::hand_to_users() {
  for (std::size_t k = entry_.size(); k-- > 0;) {
    const auto uses = entry_.uses(InstructionIndex(k));
    const Opcode opcode = entry_[InstructionIndex(k)].opcode;
    const bool is_given = opcode == Opcode::kParameter || opcode == Opcode::kConstant;
    if (has_name_[k] != 0 || is_given || uses.empty()) continue;
    const auto all = [&](const auto& holds) { return std::ranges::all_of(uses, holds); };
    if (all([&](const Use& use) { return parts_[use.user.index] == StepPart::kBackward; }))
      parts_[k] = StepPart::kBackward;
    checkpointed_[k] = all([&](const Use& use) { return checkpointed_[use.user.index] != 0; });
  }
}

bool StepParts::hands_on(InstructionIndex i) const {
  switch (entry_[i].opcode) {
    case Opcode::kBitcast:
    case Opcode::kReshape:
      return true;
    case Opcode::kTuple:
      return i != entry_.root().instruction && entry_[i].shape.is_flat_tuple();
    case Opcode::kCopyStart:
      return host_transfer(program_, {program_.entry, i}).has_value();
    case Opcode::kCopyDone:
      return hands_on(entry_.operands(i)[0].instruction);
    default:
      return false;
  }
}

std::optional<Operand> StepParts::handed_on(const Use& use) const {
  const InstructionIndex i = use.user;
  if (!hands_on(i)) return std::nullopt;
  if (entry_[i].opcode == Opcode::kTuple)
    return Operand{i, entry_[i].shape.element_node(use.operand_number)};
  if (entry_[i].opcode != Opcode::kCopyStart) return Operand{i, 0};
  const auto done = find_done(entry_, i);
  return done ? std::optional(Operand{*done, 0}) : std::nullopt;
}

Operand StepParts::behind_copies(Operand value) const {
  while (hands_on(value.instruction)) {
    InstructionIndex from = value.instruction;
    const bool is_tuple = entry_[from].opcode == Opcode::kTuple;
    if (is_tuple && value.node == 0) break;
    if (entry_[from].opcode == Opcode::kCopyDone) from = entry_.operands(from)[0].instruction;
    value = entry_.operands(from)[is_tuple ? value.node - 1 : 0];
  }
  return value;
}

}  // namespace spillway
