#include "sim/rewrite/stack_access.h"

#include <algorithm>

#include "sim/rewrite/async_slice.h"

namespace spillway {

using Reference = ComputationEditor::Reference;

std::optional<InstructionIndex> done_of_wrapper(const Program& program, const Lifetimes& memory,
                                                ComputationId body, InstructionId wrapped) {
  const auto caller = memory.schedule.caller[wrapped.computation];
  if (!caller || caller->computation != body || program[*caller].opcode != Opcode::kAsyncStart)
    return std::nullopt;
  return find_done(program[body], caller->instruction);
}

std::uint32_t operand_now(const Program& program, ProgramEditor& editor,
                          const StackAccess& access) {
  const InstructionId id = access.instruction;
  const Operand original = program[id.computation].operands(id.instruction)[access.operand];
  const auto& now = editor.edit(id.computation)[id.instruction.index].operands;
  const auto found = std::ranges::find(now, Reference{original.instruction.index, original.node});
  check(found != now.end(), "what touches a residual no longer has it as an operand");
  return static_cast<std::uint32_t>(found - now.begin());
}

namespace {

/// Whether split_update (async_slice.h) can take the update out of what writes the stack.
bool can_split_update(const Program& program, const StackAccess& write) {
  const Computation& computation = program[write.instruction.computation];
  const InstructionIndex i = write.instruction.instruction;
  if (computation[i].opcode == Opcode::kDynamicUpdateSlice) return write.operand == 0;
  return computation[i].opcode == Opcode::kFusion &&
         find_update(program[computation.called(i)[0]], write.operand).has_value();
}

/// Whether split_read can give a reader the slice instead of the stack.
bool can_split_read(const Program& program, const StackAccess& read) {
  const Computation& computation = program[read.instruction.computation];
  const InstructionIndex i = read.instruction.instruction;
  const Opcode opcode = computation[i].opcode;
  if (opcode == Opcode::kDynamicSlice || opcode == Opcode::kSlice) return read.operand == 0;
  return opcode == Opcode::kFusion &&
         !find_slices(program[computation.called(i)[0]], read.operand).empty();
}

}  // namespace

bool can_take_update(const Program& program, const Lifetimes& memory, ComputationId body,
                     const StackAccess& write) {
  return write.instruction.computation == body
             ? can_split_update(program, write)
             : done_of_wrapper(program, memory, body, write.instruction).has_value();
}

bool can_take_slice(const Program& program, const Lifetimes& memory, ComputationId body,
                    const StackAccess& read) {
  return read.instruction.computation == body
             ? can_split_read(program, read)
             : done_of_wrapper(program, memory, body, read.instruction).has_value();
}

Reference fetch_slice(const Program& program, const Lifetimes& memory, ProgramEditor& editor,
                      ComputationId body, const std::vector<StackAccess>& reads,
                      const std::string& name) {
  std::optional<Reference> slice;
  // A read that already is a copy of its own serves the others.
  for (const StackAccess& read : reads)
    if (const auto done = done_of_wrapper(program, memory, body, read.instruction))
      slice = Reference{done->index, 0};
  for (const StackAccess& read : reads)
    if (read.instruction.computation == body)
      split_read(editor, body, read.instruction.instruction.index,
                 operand_now(program, editor, read), name, slice);
  check(slice.has_value(), "a stack is moved that nothing reads");
  return *slice;
}

}  // namespace spillway
