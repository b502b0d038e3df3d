// Copies of what an instruction calls, for a copy of that instruction.
#pragma once

#include "sim/rewrite/program_editor.h"

namespace spillway {

/// A copy of a computation that runs when it is called, and of those it runs in turn: each has one
/// caller, so that a copy is called by a copy. What is only part of a kernel stays shared.
ComputationId clone_called(const Program& program, ProgramEditor& out, ComputationId id);

/// A copy of an instruction of a program under a name of its own, still without operands. What it
/// runs is copied, and control dependencies are left behind: they name what stays where it was.
ComputationEditor::Node clone_node(const Program& program, ProgramEditor& out,
                                   const ComputationEditor::Node& original, std::string name);

}  // namespace spillway
