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
    if (name.empty() || handed_on(i) || opcode == Opcode::kConstant) continue;
    has_name_[i.index] = 1;
    if (name.find("transpose(") == std::string_view::npos) {
      is_forward_[i.index] = name.find("jvp(") != std::string_view::npos;
      continue;
    }
    parts_[i.index] = StepPart::kBackward;
    checkpointed_[i.index] = name.find("checkpoint") != std::string_view::npos ||
                             name.find("rematted_computation") != std::string_view::npos;
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

std::optional<Operand> StepParts::handed_on(InstructionIndex i) const {
  switch (entry_[i].opcode) {
    case Opcode::kBitcast:
    case Opcode::kReshape:
      return Operand{i, 0};
    case Opcode::kCopyStart: {
      if (!host_transfer(program_, {program_.entry, i})) return std::nullopt;
      const auto done = find_done(entry_, i);
      return done ? std::optional(Operand{*done, 0}) : std::nullopt;
    }
    case Opcode::kCopyDone:
      return handed_on(entry_.operands(i)[0].instruction) ? std::optional(Operand{i, 0})
                                                           : std::nullopt;
    default:
      return std::nullopt;
  }
}

Operand StepParts::behind_copies(Operand value) const {
  while (handed_on(value.instruction)) {
    InstructionIndex from = value.instruction;
    if (entry_[from].opcode == Opcode::kCopyDone) from = entry_.operands(from)[0].instruction;
    value = entry_.operands(from)[0];
  }
  return value;
}

}  // namespace spillway
