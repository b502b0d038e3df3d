// Changes a while loop and what stands around it: parts of its body copied to its caller, its carry
// made wider, iterations taken away.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "sim/rewrite/program_editor.h"

namespace spillway {

/// A loop whose carry is a flat tuple, made by a tuple right in its caller.
class LoopPeeler {
 public:
  using Handle = ComputationEditor::Handle;
  using Reference = ComputationEditor::Reference;
  using References = std::map<Handle, Reference>;  ///< what stands for an instruction elsewhere
  /// What stands for an element of the carry.
  using Elements = std::function<Reference(std::uint32_t element)>;

  /// Both must outlive it.
  LoopPeeler(const Program& program, ProgramEditor& editor, InstructionId loop);

  /// Whether the carry is of that kind, the body runs no loops, calls or branches of its own, body
  /// and condition are those of this loop only, and carry, what it begins with and what the loop
  /// returns are read by elements only: all three are made wider.
  static bool can_peel(const Program& program, InstructionId loop);

  const Computation& body() const { return body_; }
  ComputationId body_id() const { return body_id_; }
  ComputationEditor& edit_body() { return editor_.edit(body_id_); }
  ComputationEditor& caller() { return caller_; }

  Handle loop() const { return loop_.instruction.index; }
  /// The tuple that the loop begins with.
  Handle initial() const { return caller_[loop()].operands[0].handle; }
  Handle parameter() const { return body_.parameters()[0].index; }
  Handle root() const { return body_.root().instruction.index; }
  /// Elements of the carry, before it was made wider.
  std::uint32_t elements() const { return elements_; }
  /// An element of the carry: in the body, and behind the loop.
  Reference carried(std::uint32_t element) const { return {parameter(), element + 1}; }
  Reference returned(std::uint32_t element) const { return {loop(), element + 1}; }

  /// A name that no other instruction has.
  std::string_view new_name(std::string_view base);
  Shape copy_shape(Shape shape) const;
  /// A copy of an instruction of the body, without operands yet.
  ComputationEditor::Node clone(InstructionIndex i);
  /// Where an operand of the body is found elsewhere.
  Reference translate(const References& known, const Elements& element_of, Operand operand) const;

  /// Instructions of the body, operands before users, in front of `before` in `target`. Those that
  /// are known stay as they are.
  void clone_before(const std::vector<InstructionIndex>& instructions, ComputationEditor& target,
                    Handle before, const Elements& element_of, References& known);
  /// The whole body but for `left_out` and its root, in front of `before` or else right behind the
  /// loop, in its order.
  References inline_body(std::optional<Handle> before, const std::set<Handle>& left_out,
                         const Elements& element_of, References known);

  /// Appends `values` of the body to the carry: in body, condition, loop and shapes. What it begins
  /// with is the caller's to add.
  void widen(const std::vector<Reference>& values);
  void set_trip_count(std::int64_t trips);

 private:
  ComputationEditor::Node clone_with_operands(InstructionIndex i, const Elements& element_of,
                                              const References& known);

  const Program& program_;
  ProgramEditor& editor_;
  const InstructionId loop_;
  const ComputationId body_id_;
  const Computation& body_;
  ComputationEditor& caller_;
  std::uint32_t elements_ = 0;
  int names_ = 0;
};

}  // namespace spillway
