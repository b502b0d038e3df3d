#include "sim/rewrite/stack_access.h"

#include <algorithm>

#include "model/program/call_graph.h"
#include "sim/rewrite/async_slice.h"

namespace spillway {

using Reference = ComputationEditor::Reference;

std::optional<InstructionIndex> done_of_wrapper(const Program& program,
                                                const MemoryAssignment& memory, ComputationId body,
                                                InstructionId wrapped) {
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

Reference fetch_slice(const Program& program, const MemoryAssignment& memory, ProgramEditor& editor,
                      const Residual& residual) {
  const ComputationId body_id = body_of(program, residual.backward_loop);
  std::optional<Reference> slice;
  // A read that already is a copy of its own serves the others.
  for (const StackAccess& read : residual.reads)
    if (const auto done = done_of_wrapper(program, memory, body_id, read.instruction))
      slice = Reference{done->index, 0};
  for (const StackAccess& read : residual.reads)
    if (read.instruction.computation == body_id)
      split_read(editor, body_id, read.instruction.instruction.index,
                 operand_now(program, editor, read), "reload." + residual.id, slice);
  check(slice.has_value(), "a residual is moved that nothing reads");
  return *slice;
}

}  // namespace spillway
