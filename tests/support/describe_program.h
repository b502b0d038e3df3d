// A program as text, whatever it was read from: for tests that two programs are the same.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "model/program/program.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

inline std::string full_shape(Shape shape) {
  std::string text = to_string(shape);
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    const Shape part = shape.at(node);
    text += " " + std::to_string(part.bytes().value()) + "@" +
            std::to_string(static_cast<int>(part.space()));
    for (const std::int64_t dim : part.minor_to_major()) text += "," + std::to_string(dim);
  }
  return text;
}

/// XLA writes the keys of a backend config by name into its text, and as they come into its protos.
inline std::string sorted_json(std::string_view value) {
  const auto json = nlohmann::json::parse(value, nullptr, false);
  return json.is_object() ? json.dump() : std::string(value);
}

/// An instruction in one line: shape opcode(operand{node} …), attributes -> what it calls.
inline std::string describe_instruction(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  std::string text = to_string(computation[id.instruction].shape) + " " +
                     std::string(opcode_name(computation[id.instruction].opcode)) + "(";
  const char* separator = "";
  for (const Operand& operand : computation.operands(id.instruction)) {
    const Shape shape = computation[operand.instruction].shape;
    text += separator + std::string(computation[operand.instruction].name);
    if (operand.node > 0) text += path_to_string(shape, operand.node);
    separator = ", ";
  }
  text += std::string(computation[id.instruction].literal) + ")";
  for (const Attribute& attribute : computation.attributes(id.instruction))
    text += ", " + std::string(attribute.name) + "=" + std::string(attribute.value);
  for (const ComputationId callee : computation.called(id.instruction))
    text += " -> " + std::string(program[callee].name());
  return text;
}
inline std::string describe_instruction(const Program& program, std::string_view name) {
  return describe_instruction(program, find_instruction(program, name));
}

/// Every instruction with its operands, calls, literal and attributes by name, those in `without`
/// left out. Computations by name: XLA's text and protos do not have them in one order.
inline std::string describe(const Program& program,
                            const std::set<std::string_view>& without = {}) {
  std::string text = program.name + (program.is_scheduled ? " scheduled" : "") + " of " +
                     std::to_string(program.num_partitions) + "x" +
                     std::to_string(program.replica_count) + "\n";
  for (const InputOutputAlias& alias : program.aliases)
    text += "alias " + std::to_string(alias.output) + " " + std::to_string(alias.parameter) + " " +
            std::to_string(alias.parameter_node) + "\n";
  std::map<std::string_view, ComputationId> by_name;
  for (const ComputationId id : ids(program.computations)) by_name[program[id].name()] = id;
  for (const auto& [name, id] : by_name) {
    const Computation& computation = program[id];
    text += (id == program.entry ? "ENTRY " : "") + std::string(computation.name()) + " -> " +
            std::to_string(computation.root().instruction.index) + "#" +
            std::to_string(computation.root().node) + "\n";
    for (const InstructionIndex i : computation.instructions()) {
      const Instruction& in = computation[i];
      text += "  " + std::string(in.name) + " = " + full_shape(in.shape) + " " +
              std::string(in.opcode_text) + "(" + std::string(in.literal);
      for (const Operand& operand : computation.operands(i))
        text +=
            " %" + std::to_string(operand.instruction.index) + "#" + std::to_string(operand.node);
      text += ")";
      for (const ComputationId called : computation.called(i))
        text += " ->" + std::string(program[called].name());
      std::set<std::string> attributes;
      for (const Attribute& attribute : computation.attributes(i))
        if (!without.contains(attribute.name))
          attributes.insert(std::string(attribute.name) + "=" + sorted_json(attribute.value));
      for (const std::string& attribute : attributes) text += ", " + attribute;
      text += " " + source_line(program, {id, i}) + "\n";
    }
  }
  return text;
}

/// The first line in which two descriptions differ, as "- …\n+ …"; empty when none does.
inline std::string first_difference(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto take = [](std::string_view& rest) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      return line;
    };
    const std::string_view x = take(a), y = take(b);
    if (x != y) return "- " + std::string(x) + "\n+ " + std::string(y);
  }
  return "";
}

}  // namespace spillway::testing
