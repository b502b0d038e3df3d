// Runs a toy program on numbers: two programs that should compute the same can be asked.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "model/program/program.h"

namespace spillway::testing {

/// A value by the nodes of its shape; tuples hold nothing themselves.
using Tree = std::vector<std::vector<double>>;

/// Knows what toy scans consist of. Memory that is allocated and not yet written is not a number; a
/// library call adds twice its second operand to the first. Loops need a trip count.
class ToyRun {
 public:
  explicit ToyRun(const Program& program) : program_(program) {}

  Tree run(ComputationId id, const std::vector<Tree>& arguments) const {
    const Computation& computation = program_[id];
    std::vector<Tree> made;
    const auto read = [&](Operand operand) {
      const auto from = made[operand.instruction.index].begin() + operand.node;
      return Tree(from, from + computation.shape_of(operand).node_count());
    };
    for (const InstructionIndex i : computation.instructions()) {
      std::vector<Tree> operands;
      for (const Operand& operand : computation.operands(i)) operands.push_back(read(operand));
      Tree result = compute({id, i}, operands, arguments);
      REQUIRE(result.size() == computation[i].shape.node_count());
      made.push_back(std::move(result));
    }
    return read(computation.root());
  }

 private:
  static std::vector<double> each(const std::vector<Tree>& operands,
                                  const std::function<double(double, double)>& f) {
    std::vector<double> result = operands[0][0];
    REQUIRE(operands.back()[0].size() == result.size());
    for (std::size_t k = 0; k < result.size(); ++k) result[k] = f(result[k], operands.back()[0][k]);
    return result;
  }

  /// Where a slice of one row begins in a stack; as in XLA, never outside.
  static std::ptrdiff_t row(const Tree& stack, const Tree& index, std::size_t size) {
    const auto rows = static_cast<double>(stack[0].size() / size);
    return static_cast<std::ptrdiff_t>(std::clamp(index[0][0], 0.0, rows - 1)) *
           static_cast<std::ptrdiff_t>(size);
  }

  static Tree join(const std::vector<Tree>& elements) {
    Tree tuple(1);
    for (const Tree& element : elements) tuple.insert(tuple.end(), element.begin(), element.end());
    return tuple;
  }

  Tree compute(InstructionId id, const std::vector<Tree>& in,
               const std::vector<Tree>& arguments) const {
    const Computation& computation = program_[id.computation];
    const Instruction& instruction = computation[id.instruction];
    const Shape shape = instruction.shape;
    const auto size = [](Shape array) { return static_cast<std::size_t>(array.elements()); };
    switch (instruction.opcode) {
      case Opcode::kParameter:
        return arguments.at(parameter_number(instruction));
      case Opcode::kConstant:
        return {{instruction.literal == "true" ? 1 : std::stod(std::string(instruction.literal))}};
      case Opcode::kTuple:
        return join(in);
      case Opcode::kCopy:
      case Opcode::kBitcast:
        return in[0];
      case Opcode::kNegate:
        return {each(in, [](double x, double) { return -x; })};
      case Opcode::kTanh:
        return {each(in, [](double x, double) { return std::tanh(x); })};
      case Opcode::kAdd:
        return {each(in, std::plus<>())};
      case Opcode::kSubtract:
        return {each(in, std::minus<>())};
      case Opcode::kMultiply:
        return {each(in, std::multiplies<>())};
      case Opcode::kBroadcast:
        return {std::vector<double>(size(shape), in[0][0][0])};
      case Opcode::kDynamicSlice: {
        const auto from = in[0][0].begin() + row(in[0], in[1], size(shape));
        return {std::vector<double>(from, from + shape.elements())};
      }
      case Opcode::kDynamicUpdateSlice: {
        Tree stack = in[0];
        std::ranges::copy(in[1][0], stack[0].begin() + row(stack, in[2], in[1][0].size()));
        return stack;
      }
      case Opcode::kFusion:
        return run(computation.called(id.instruction)[0], in);
      case Opcode::kAsyncStart:
        return join({join(in), run(computation.called(id.instruction)[0], in), Tree{{0}}});
      case Opcode::kCopyStart:
        return join({in[0], in[0], Tree{{0}}});
      case Opcode::kCopyDone:
        return {in[0][1]};
      case Opcode::kAsyncDone: {
        const Shape start = computation.shape_of(computation.operands(id.instruction)[0]);
        const auto from = in[0].begin() + start.element_node(1);
        return Tree(from, from + shape.node_count());
      }
      case Opcode::kWhile: {
        Tree state = in[0];
        for (auto left = known_trip_count(computation, id.instruction).value(); left > 0; --left)
          state = run(computation.called(id.instruction)[1], {state});
        return state;
      }
      case Opcode::kCustomCall:
        if (shape.is_tuple())
          return join({{each(in, [](double x, double y) { return x + 2 * y; })},
                       {std::vector<double>(size(shape.element(1)))}});
        return {std::vector<double>(size(shape), std::numeric_limits<double>::quiet_NaN())};
      default:
        FAIL("no toy program has " << instruction.opcode_text);
        return {};
    }
  }

  const Program& program_;
};

/// What a program of one array returns for 0.1, 0.2, …
inline std::vector<double> run_toy(const Program& program) {
  const Computation& entry = program.entry_computation();
  std::vector<double> x(static_cast<std::size_t>(entry[entry.parameters()[0]].shape.elements()));
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = 0.1 * static_cast<double>(k + 1);
  return ToyRun(program).run(program.entry, {{x}}).back();
}

/// What a program of several arrays returns: element k of argument n is 0.1 * (n + 1) + 0.01 * k.
inline Tree run_toy_arguments(const Program& program) {
  const Computation& entry = program.entry_computation();
  std::vector<Tree> arguments;
  for (const InstructionIndex i : entry.parameters()) {
    std::vector<double> x(static_cast<std::size_t>(entry[i].shape.elements()));
    for (std::size_t k = 0; k < x.size(); ++k)
      x[k] = 0.1 * static_cast<double>(arguments.size() + 1) + 0.01 * static_cast<double>(k);
    arguments.push_back({x});
  }
  return ToyRun(program).run(program.entry, arguments);
}

}  // namespace spillway::testing
