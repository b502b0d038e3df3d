#include "model/program/computation.h"

#include <charconv>

namespace spillway {

Computation::Computation(Key, ComputationParts parts) : parts_(std::move(parts)) {
  const auto& instructions = parts_.instructions;
  const auto& operands = parts_.operands;
  first_use_.assign(size() + 1, 0);
  for (const Operand& operand : operands) ++first_use_[operand.instruction.index];
  std::uint32_t end = 0;
  for (std::uint32_t& first : first_use_) first = end += first;
  // Each entry is where the uses of an instruction end; filling from behind leaves where they
  // begin.
  uses_.resize(operands.size());
  std::uint32_t parameters = 0;
  for (std::size_t i = size(); i-- > 0;) {
    const Instruction& in = instructions[i];
    for (std::uint32_t k = in.operand_count; k-- > 0;)
      uses_[--first_use_[operands[in.first_operand + k].instruction.index]] = {InstructionIndex(i),
                                                                               k};
    parameters += in.opcode == Opcode::kParameter ? 1 : 0;
  }
  parameters_.resize(parameters);
  for (std::size_t i = 0; i < size(); ++i) {
    if (instructions[i].opcode != Opcode::kParameter) continue;
    const std::uint32_t number = parameter_number(instructions[i]);
    check(number < parameters, "the parameters of a computation are numbered with gaps");
    parameters_[number] = InstructionIndex(i);
  }
}

std::shared_ptr<const Computation> make_computation(ComputationParts parts) {
  return std::make_shared<const Computation>(Computation::Key{}, std::move(parts));
}

std::optional<std::string_view> Computation::attribute(InstructionIndex i,
                                                       std::string_view name) const {
  for (const Attribute& attribute : attributes(i))
    if (attribute.name == name) return attribute.value;
  return std::nullopt;
}

std::uint32_t parameter_number(const Instruction& parameter) {
  std::uint32_t number = 0;
  std::from_chars(parameter.literal.data(), parameter.literal.data() + parameter.literal.size(),
                  number);
  return number;
}

Operand behind_renamings(const Computation& computation, Operand value) {
  while (is_renaming(computation[value.instruction].opcode)) {
    const auto operands = computation.operands(value.instruction);
    check(!operands.empty(), "a bitcast renames nothing");
    value = operands[0];
  }
  return value;
}

std::optional<std::uint32_t> find_parameter(const Computation& computation, Operand value) {
  const Instruction& source = computation[behind_renamings(computation, value).instruction];
  if (source.opcode != Opcode::kParameter) return std::nullopt;
  return parameter_number(source);
}

std::string_view metadata_field(const Computation& computation, InstructionIndex i,
                                std::string_view key) {
  const std::string_view text = computation.attribute(i, "metadata").value_or("");
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t equals = at + key.size();
    const bool whole_key = at > 0 && (text[at - 1] == '{' || text[at - 1] == ' ');
    if (!whole_key || equals >= text.size() || text[equals] != '=') continue;
    std::string_view value = text.substr(equals + 1);
    if (value.starts_with('"')) {
      std::size_t end = 1;
      while (end < value.size() && value[end] != '"') end += value[end] == '\\' ? 2 : 1;
      return value.substr(1, end - 1);
    }
    return value.substr(0, value.find_first_of(" }"));
  }
  return {};
}

std::string metadata_text(const Computation& computation, InstructionIndex i,
                          std::string_view key) {
  std::string text;
  bool escaped = false;
  for (const char c : metadata_field(computation, i, key)) {
    escaped = c == '\\' && !escaped;
    if (!escaped) text += c;
  }
  return text;
}

bool has_attribute(const Computation& computation, InstructionIndex i, std::string_view name,
                   std::string_view value) {
  return computation.attribute(i, name) == value;
}

std::vector<std::int64_t> parse_integers(std::string_view list) {
  std::vector<std::int64_t> numbers;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = next == at ? at + 1 : next;
  }
  return numbers;
}

}  // namespace spillway
