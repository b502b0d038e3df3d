// Changes a copy of a program: computations edited, computations added. What is not touched stays
// shared with the original.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "sim/rewrite/editor.h"

namespace spillway {

class ProgramEditor {
 public:
  /// The program must outlive the editor.
  explicit ProgramEditor(const Program& program)
      : original_(program), out_(program), storage_(std::make_shared<RewriteStorage>()) {}

  /// The editor of a computation of the original program; all edits of one meet in it.
  ComputationEditor& edit(ComputationId id);
  /// A computation as it was added, or as it was in the original; edits do not show.
  const std::shared_ptr<const Computation>& computation(ComputationId id) const {
    return out_.computations[id];
  }
  ComputationId add(std::shared_ptr<const Computation> computation) {
    return out_.computations.push(std::move(computation));
  }

  const std::shared_ptr<RewriteStorage>& storage() const { return storage_; }
  std::string_view text(std::string value) { return storage_->text(std::move(value)); }

  /// As of the editors: empty where every computation reads only what is made before.
  std::string find_misorder() const;
  /// The edited program, which has no misorder. The editor is used up.
  Program finish();

 private:
  const Program& original_;
  Program out_;
  std::shared_ptr<RewriteStorage> storage_;
  std::map<ComputationId, ComputationEditor> editors_;
};

/// An instruction without operands yet.
ComputationEditor::Node make_node(std::string_view name, Opcode opcode, Shape shape);
ComputationEditor::Node make_parameter(std::string_view name, std::uint32_t number, Shape shape,
                                       RewriteStorage& storage);

/// Ends the names of renamings that rewrites add.
inline constexpr std::string_view kRenamedSuffix = ".renamed";

/// A renaming of a value to a shape of the same bytes, called "<name>.renamed", at the end of the
/// order.
ComputationEditor::Reference add_bitcast(ProgramEditor& program, ComputationEditor& computation,
                                         std::string name, ComputationEditor::Reference value,
                                         Shape shape);
/// The instruction waits for these as well: "%a, %b".
void add_control_predecessors(ProgramEditor& program, ComputationEditor::Node& node,
                              std::string_view names);
/// An asynchronous copy of an array to a memory space, called "<name>start" and "<name>done", at
/// the end of the order: its done.
ComputationEditor::Handle add_copy(ProgramEditor& program, ComputationEditor& computation,
                                   const std::string& name, ComputationEditor::Reference from,
                                   MemorySpace space);

}  // namespace spillway
