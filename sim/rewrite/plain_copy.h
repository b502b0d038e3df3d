// The two forms in which XLA copies a slice of a stacked array asynchronously: within HBM a fusion
// of the slice and its index, between HBM and pinned host memory the slice alone, its index worked
// out in front. The latency-hiding scheduler treats them differently.
//
//   within HBM   start(stack, i)        wraps  fusion(stack, i) = slice of stack at 31 - i
//   to the host  k = fusion(i) = 31 - i
//                start(stack, k, 0, 0)  wraps  fusion of the slice at k, 0, 0
#pragma once

#include <map>
#include <string>

#include "sim/rewrite/program_editor.h"

namespace spillway {

/// Brings copies of one body into the form of copies to and from the host.
class PlainCopies {
 public:
  using Handle = ComputationEditor::Handle;
  using Reference = ComputationEditor::Reference;

  PlainCopies(ProgramEditor& program, ComputationId body)
      : program_(program), body_id_(body), body_(program.edit(body)) {}

  /// The copy that `done` ends, in the form of one to the host; as it is where that is no fusion of
  /// a slice alone. New instructions stand in front of the start.
  void unfuse(Handle done);
  /// Behind all copies: the indices that they read, read by everyone else who needs them.
  void share_indices();

 private:
  struct Fusion;
  std::optional<Reference> operand(const Fusion& fusion, Operand inner, Handle before);
  Reference constant(const Instruction& constant, Handle before);
  std::shared_ptr<const Computation> wrap(ComputationEditor::Node instruction,
                                          const std::vector<Shape>& operands,
                                          const std::string& name, const Computation& owner);
  Reference scalar(const Fusion& fusion, Operand inner, Handle before);

  ProgramEditor& program_;
  const ComputationId body_id_;
  ComputationEditor& body_;
  std::map<std::string, Reference> scalars_;  ///< by how they are worked out
};

}  // namespace spillway
