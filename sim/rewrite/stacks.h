// What rewrites of stacked arrays have in common: a stack's value moved to another memory space
// wherever it shows, what it begins with replaced, and copies of its slices put into order.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {

/// Where a value is to lie from now on; empty where it stays.
using SpaceOfValue = std::function<std::optional<MemorySpace>(ValueId)>;

/// Every shape that shows a moved value says where it now lies, those of parameters of fusions too.
/// To be called before anything else is edited.
void move_values(ProgramEditor& out, const Program& program, const Lifetimes& memory,
                 const SpaceOfValue& space_of);

/// Which element of the tuple that a loop begins with is the stack; empty where what it begins with
/// is no tuple of its own.
std::optional<std::uint32_t> initial_element(const Program& program, const Lifetimes& memory,
                                             InstructionId loop, BufferId stack);

/// What the loop begins with at `element` is made anew in `space`: zeros that a kernel writes in
/// HBM, or host memory that is only allocated. `name` is the stack's.
void replace_initial_value(ProgramEditor& out, InstructionId loop, std::uint32_t element,
                           MemorySpace space, const std::string& name);

/// Puts an instruction right behind the last of its operands.
void place_after_operands(ComputationEditor& body, ComputationEditor::Handle handle);
/// Puts a done right before the first instruction that computes with it, or hands it on at the end;
/// renamings in between come along.
void place_before_users(ComputationEditor& body, ComputationEditor::Handle done);

}  // namespace spillway
