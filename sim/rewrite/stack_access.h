// How a loop body reads and writes a stack, of a residual or of parameters, while the body is being
// rewritten.
#pragma once

#include <string>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {

/// The done, in a loop's body, of the async start that wraps an instruction; empty when no start
/// there does, or when its done is elsewhere.
std::optional<InstructionIndex> done_of_wrapper(const Program& program, const Lifetimes& memory,
                                                ComputationId body, InstructionId wrapped);

/// Which operand of a writer or reader in the body is the stack, as it now stands.
std::uint32_t operand_now(const Program& program, ProgramEditor& editor, const StackAccess& access);

/// Whether the update of a stack is an asynchronous copy of the body already, or can be made one
/// (split_update).
bool can_take_update(const Program& program, const Lifetimes& memory, ComputationId body,
                     const StackAccess& write);
/// Whether a read of a stack is such a copy already, or can be handed the slice (split_read).
bool can_take_slice(const Program& program, const Lifetimes& memory, ComputationId body,
                    const StackAccess& read);

/// Makes one asynchronous copy, called `name`, fetch the slice of a stack for all who read it in
/// the body of a loop: its done. All of them can be split, or are such copies. `program` and
/// `memory` are as before the rewrite.
ComputationEditor::Reference fetch_slice(const Program& program, const Lifetimes& memory,
                                         ProgramEditor& editor, ComputationId body,
                                         const std::vector<StackAccess>& reads,
                                         const std::string& name);

}  // namespace spillway
