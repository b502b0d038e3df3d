// Gives a while loop more to carry: values from around it that stay as they are in every iteration.
#pragma once

#include "sim/rewrite/program_editor.h"

namespace spillway {

/// A loop whose carry is a flat tuple, put together by a tuple right in its caller.
class LoopCarry {
 public:
  using Handle = ComputationEditor::Handle;
  using Reference = ComputationEditor::Reference;

  /// Both must outlive it.
  LoopCarry(const Program& program, ProgramEditor& editor, InstructionId loop);

  /// Whether a loop is such a one, with that tuple for it alone.
  static bool is_flat(const Program& program, InstructionId loop);

  /// Where the body finds a value of the caller: an element that it carries unchanged.
  std::optional<Reference> find(Reference of_caller) const;
  /// The same, appended to the carry where it is not there yet.
  Reference find_or_add(Reference of_caller);

 private:
  Reference carried(std::size_t element) const;

  const Program& program_;
  ProgramEditor& editor_;
  const InstructionId loop_;
  const ComputationId body_id_, condition_id_;
};

}  // namespace spillway
