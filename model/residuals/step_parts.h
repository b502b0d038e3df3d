// The parts of a step without loops over its layers: forward, backward, and the update behind both.
// JAX writes them into op_name: "transpose(" marks what the backward pass computes, "checkpoint" or
// "rematted_computation" in it what belongs to a jax.checkpoint (there a policy decides what is
// saved).
#pragma once

#include <optional>
#include <vector>

#include "model/program/program.h"

namespace spillway {

enum class StepPart : std::uint8_t { kForward, kBackward, kUpdate };

class StepParts {
 public:
  /// Of the entry; the program must outlive it.
  explicit StepParts(const Program& program);

  StepPart part(InstructionIndex i) const { return parts_[i.index]; }
  /// Whether it belongs to the backward pass of a jax.checkpoint.
  bool is_checkpointed(InstructionIndex i) const { return checkpointed_[i.index] != 0; }

  /// Whether an instruction only hands on what it reads, under another name or from another memory
  /// space: a bitcast, either half of a copy between HBM and the host, or a tuple (before jaxlib
  /// 0.12 one stays where an optimization barrier was).
  bool hands_on(InstructionIndex i) const;
  /// Where the value of a use is found behind such an instruction; empty for other users.
  std::optional<Operand> handed_on(const Use& use) const;
  /// What a value is, behind all of these.
  Operand behind_copies(Operand value) const;

 private:
  void read_names();
  void hand_to_users();

  const Program& program_;
  const Computation& entry_;
  std::vector<StepPart> parts_;
  std::vector<char> checkpointed_;
  std::vector<char> is_forward_;  ///< by its name
  std::vector<char> has_name_;
};

}  // namespace spillway
