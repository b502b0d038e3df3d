#include "model/hlo/async_spelling.h"

#include <deque>
#include <string>

namespace spillway::hlo {
namespace {

constexpr std::string_view kStart = "-start";
constexpr std::string_view kDone = "-done";
constexpr std::string_view kUpdate = "-update";

Opcode opcode_before(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return Opcode::kUnknown;
  return find_opcode(name.substr(0, name.size() - suffix.size()));
}

Instruction make_parameter(Operand operand, const ComputationParts& around,
                           std::string_view number) {
  const Instruction& source = around.instructions[operand.instruction.index];
  Instruction parameter;
  parameter.name = source.name;
  parameter.opcode = Opcode::kParameter;
  parameter.opcode_text = opcode_name(Opcode::kParameter);
  parameter.shape = source.shape.at(operand.node);
  parameter.literal = number;
  return parameter;
}

}  // namespace

Opcode read_opcode(std::string_view name) {
  const Opcode opcode = find_opcode(name);
  if (opcode != Opcode::kUnknown) [[likely]]
    return opcode;
  if (opcode_before(name, kStart) != Opcode::kUnknown) return Opcode::kAsyncStart;
  if (opcode_before(name, kUpdate) != Opcode::kUnknown) return Opcode::kAsyncUpdate;
  if (opcode_before(name, kDone) != Opcode::kUnknown) return Opcode::kAsyncDone;
  return Opcode::kUnknown;
}

Opcode wrapped_opcode(std::string_view name) { return opcode_before(name, kStart); }

std::shared_ptr<const Computation> make_wrapped_computation(const Instruction& start,
                                                            const ComputationParts& around,
                                                            std::shared_ptr<const void> storage) {
  auto texts = std::make_shared<std::deque<std::string>>();  // what the program's text lacks
  ComputationParts parts;
  parts.name = start.name;
  for (std::uint32_t k = 0; k < start.operand_count; ++k) {
    const Operand operand = around.operands[start.first_operand + k];
    parts.instructions.push_back(
        make_parameter(operand, around, texts->emplace_back(std::to_string(k))));
    parts.operands.push_back({InstructionIndex(k), 0});
  }
  Instruction wrapped = start;
  wrapped.name = texts->emplace_back(std::string(start.name) + ".wrapped");
  wrapped.opcode = wrapped_opcode(start.opcode_text);
  wrapped.opcode_text = opcode_name(wrapped.opcode);
  wrapped.shape = start.shape.element(1);
  wrapped.first_operand = wrapped.first_called = wrapped.first_attribute = 0;
  parts.root = {InstructionIndex(parts.instructions.size()), 0};
  parts.instructions.push_back(wrapped);
  parts.called.assign(around.called.begin() + start.first_called, around.called.end());
  parts.attributes.assign(around.attributes.begin() + start.first_attribute,
                          around.attributes.end());
  parts.storage = {std::move(storage), std::move(texts)};
  return make_computation(std::move(parts));
}

}  // namespace spillway::hlo
