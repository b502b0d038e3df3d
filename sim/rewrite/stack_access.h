// How a loop body reads and writes the stack of a residual, while the body is being rewritten.
#pragma once

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {

/// The done, in a loop's body, of the async start that wraps an instruction; empty when no start
/// there does, or when its done is elsewhere.
std::optional<InstructionIndex> done_of_wrapper(const Program& program,
                                                const MemoryAssignment& memory, ComputationId body,
                                                InstructionId wrapped);

/// Which operand of a writer or reader in the body is the stack, as it now stands.
std::uint32_t operand_now(const Program& program, ProgramEditor& editor, const StackAccess& access);

/// Makes one asynchronous copy fetch the slice of a residual that can be moved (why_not_movable),
/// for all who read it in the backward body: its done. `program` and `memory` are as before the
/// rewrite.
ComputationEditor::Reference fetch_slice(const Program& program, const MemoryAssignment& memory,
                                         ProgramEditor& editor, const Residual& residual);

}  // namespace spillway
