#include "model/program/computation.h"

#include <charconv>

namespace spillway {

Computation::Computation(ComputationParts parts) : parts_(std::move(parts)) {
  const auto& instructions = parts_.instructions;
  first_use_.assign(size() + 1, 0);
  for (const Operand& operand : parts_.operands) ++first_use_[operand.instruction.index + 1];
  for (std::size_t i = 0; i < size(); ++i) first_use_[i + 1] += first_use_[i];

  uses_.resize(parts_.operands.size());
  std::vector<std::uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  for (const InstructionIndex user : this->instructions()) {
    const Instruction& in = instructions[user.index];
    for (std::uint32_t k = 0; k < in.operand_count; ++k)
      uses_[next[parts_.operands[in.first_operand + k].instruction.index]++] = {user, k};
    if (in.opcode != Opcode::kParameter) continue;
    const std::uint32_t number = parameter_number(in);
    if (parameters_.size() <= number) parameters_.resize(number + 1);
    parameters_[number] = user;
  }
}

std::shared_ptr<const Computation> make_computation(ComputationParts parts) {
  return std::shared_ptr<const Computation>(new Computation(std::move(parts)));
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
