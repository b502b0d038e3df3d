#include "sim/rewrite/loop_carry.h"

#include "model/program/call_graph.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;

/// What a value is a renaming of with the same shape, or a copy.
Reference behind_copies(const ComputationEditor& editor, Reference value) {
  while (value.node == 0 && editor[value.handle].instruction.opcode == Opcode::kCopy)
    value = editor[value.handle].operands[0];
  return value;
}

}  // namespace

LoopCarry::LoopCarry(const Program& program, ProgramEditor& editor, InstructionId loop)
    : program_(program),
      editor_(editor),
      loop_(loop),
      body_id_(body_of(program, loop)),
      condition_id_(program[loop.computation].called(loop.instruction)[0]) {}

bool LoopCarry::is_flat(const Program& program, InstructionId loop) {
  const Computation& caller = program[loop.computation];
  const Computation& body = program[body_of(program, loop)];
  const Operand begins = caller.operands(loop.instruction)[0];
  return body.parameters().size() == 1 && body.root().node == 0 &&
         body.root_instruction().opcode == Opcode::kTuple &&
         body.root_instruction().shape.is_flat_tuple() && begins.node == 0 &&
         caller[begins.instruction].opcode == Opcode::kTuple &&
         caller.uses(begins.instruction).size() == 1 &&
         caller.root().instruction != begins.instruction;
}

Reference LoopCarry::carried(std::size_t element) const {
  return {program_[body_id_].parameters()[0].index, static_cast<ShapeNodeIndex>(element + 1)};
}

std::optional<Reference> LoopCarry::find(Reference of_caller) const {
  const ComputationEditor& caller = editor_.edit(loop_.computation);
  const ComputationEditor& body = editor_.edit(body_id_);
  const Handle initial = caller[loop_.instruction.index].operands[0].handle;
  const auto& begins = caller[initial].operands;
  const auto& ends = body[body.root().handle].operands;
  const Reference wanted = behind_copies(caller, of_caller);
  for (std::size_t k = 0; k < begins.size(); ++k)
    if (ends[k] == carried(k) && behind_copies(caller, begins[k]) == wanted) return carried(k);
  return std::nullopt;
}

Reference LoopCarry::find_or_add(Reference of_caller) {
  if (const auto there = find(of_caller)) return *there;
  ComputationEditor& caller = editor_.edit(loop_.computation);
  ComputationEditor& body = editor_.edit(body_id_);
  ComputationEditor& condition = editor_.edit(condition_id_);
  const Handle loop = loop_.instruction.index;
  const Handle initial = caller[loop].operands[0].handle;
  const Handle root = body.root().handle;
  const Reference added = carried(body[root].operands.size());
  caller[initial].operands.push_back(of_caller);
  body[root].operands.push_back(added);
  std::vector<Shape> shapes;
  for (const Reference& element : caller[initial].operands)
    shapes.push_back(caller.shape_of(element));
  const Shape wide = make_tuple_shape(shapes, *editor_.storage());
  caller[loop].instruction.shape = wide;
  caller[initial].instruction.shape = wide;
  body[added.handle].instruction.shape = wide;
  body[root].instruction.shape = wide;
  condition[program_[condition_id_].parameters()[0].index].instruction.shape = wide;
  return added;
}

}  // namespace spillway
