#include "sim/rewrite/value_keys.h"

#include <string_view>

#include "model/program/call_graph.h"
#include "sim/rewrite/key_walk.h"

namespace spillway {

ValueKeys::ValueKeys(const Program& program, InstructionId loop)
    : program_(program), loop_(loop), forms_(std::make_shared<KeyForms>()) {
  const ComputationId body = body_of(program, loop);
  KeyMaker maker;
  maker.add(std::string_view("carry"));
  const std::vector<Keys> carry = {
      KeyWalk::derived(maker, program[body][program[body].parameters()[0]].shape)};
  const CallFrame frame{body, {}, nullptr, LoopMoment{loop, 0}};
  keys_ = KeyWalk(program, loop, *forms_).walk(frame, carry);
}

ValueKeys::ValueKeys(const Program& program)
    : program_(program), forms_(std::make_shared<KeyForms>()) {
  std::vector<Keys> arguments;
  const Computation& entry = program.entry_computation();
  for (const InstructionIndex parameter : entry.parameters()) {
    KeyMaker maker;
    maker.add(std::string_view("parameter"));
    maker.add(std::uint64_t{arguments.size()});
    arguments.push_back(KeyWalk::derived(maker, entry[parameter].shape));
  }
  keys_ = KeyWalk(program, std::nullopt, *forms_).walk(CallFrame{program.entry}, arguments);
}

ValueKey ValueKeys::within(InstructionIndex fusion, Operand value) const {
  const ComputationId body = body_of(program_, *loop_);
  const CallFrame frame{body, {}, nullptr, LoopMoment{*loop_, 0}};
  std::vector<Keys> arguments;
  for (const Operand& operand : program_[body].operands(fusion))
    arguments.push_back(KeyWalk::below(program_[body], operand, keys_));
  const CallFrame inner{program_[body].called(fusion)[0], InstructionId{body, fusion}, &frame};
  const auto keys = KeyWalk(program_, loop_, *forms_).walk(inner, arguments);
  return keys[value.instruction.index][value.node];
}

std::optional<ValueKey> ValueKeys::update_key(InstructionId writer, std::uint32_t stack) const {
  check(loop_.has_value(), "an update of a stack is asked for outside a loop");
  const ComputationId body = body_of(program_, *loop_);
  const CallFrame frame{body, {}, nullptr, LoopMoment{*loop_, 0}};
  KeyWalk walk(program_, *loop_, *forms_);
  if (writer.computation == body) return walk.update_key(frame, writer.instruction, stack, keys_);
  for (const InstructionIndex i : program_[body].instructions()) {
    if (program_[body][i].opcode != Opcode::kAsyncStart ||
        program_[body].called(i)[0] != writer.computation)
      continue;
    std::vector<Keys> arguments;
    for (const Operand& operand : program_[body].operands(i))
      arguments.push_back(KeyWalk::below(program_[body], operand, keys_));
    const CallFrame inner{writer.computation, InstructionId{body, i}, &frame};
    return walk.update_key(inner, writer.instruction, stack, walk.walk(inner, arguments));
  }
  return std::nullopt;
}

}  // namespace spillway
