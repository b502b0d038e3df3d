// Copies of slices as instructions of their own: taken out of what also computes with them, and put
// into an async pair, as XLA moves slices between HBM and pinned host memory.
//
//   before   fusion(stack, a, i) = (update stack at i with a + a)
//   after    fusion(a) = a + a
//            start(stack, i, fusion)  wraps  (update stack at i with slice)
//            done(start)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/rewrite/fusion_parts.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {

/// Takes the update of a stack, the writer's operand number `operand`, out of `writer`, a fusion or
/// an update by itself, and puts it into an async pair. Returns the done, at the end of the order
/// as the start is; whoever read the stack reads it.
ComputationEditor::Handle split_update(ProgramEditor& program, ComputationId body,
                                       ComputationEditor::Handle writer, std::uint32_t operand,
                                       const std::string& name);

/// Makes `reader`, a fusion or a slice by itself, take a slice that was fetched instead of the
/// stack, its operand number `operand`. Without `slice`, fetches it with a new async pair, at the
/// end of the order, and sets it to the done.
void split_read(ProgramEditor& program, ComputationId body, ComputationEditor::Handle reader,
                std::uint32_t operand, const std::string& name,
                std::optional<ComputationEditor::Reference>& slice);

/// Has those who read what a fusion only hands on, `value`, its last operand, read `value`.
void drop_handed_on(ProgramEditor& program, ComputationId body, ComputationEditor::Handle fusion,
                    ComputationEditor::Reference value);

/// The inverse of split_read, for a slice within HBM: fusions of loops and reductions that read
/// what `done` brings slice the stack themselves, as XLA lets them. Where nobody else reads it the
/// pair goes; the done if it stays.
std::optional<ComputationEditor::Handle> fold_read(ProgramEditor& program, ComputationId body,
                                                   ComputationEditor::Handle done);

/// Has fusions of loops and reductions that read a fusion of one result compute it inside, as XLA
/// does with what is made from less than it is; it goes where nobody else reads it.
void fuse_into_users(ProgramEditor& program, ComputationId body, ComputationEditor::Handle fusion);

/// Has fusions of loops and reductions read what a renaming renames and rename it inside, as XLA
/// does; a renaming goes where nobody else reads it. Of all that rewrites have added to a body.
void fuse_renamings(ProgramEditor& program, ComputationId body);

/// Takes a result that nobody reads out of a fusion of several. Does nothing where something reads
/// the results as a whole.
void drop_fusion_output(ProgramEditor& program, ComputationId body,
                        ComputationEditor::Handle fusion, std::uint32_t output);

}  // namespace spillway
