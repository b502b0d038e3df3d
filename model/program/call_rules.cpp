#include <fmt/format.h>

#include "model/program/instruction_rules.h"

namespace spillway::internal {
namespace {

/// One instruction and the computations it calls.
class CallRules {
 public:
  CallRules(const Program& program, InstructionId id, Signatures& signatures)
      : program_(program),
        signatures_(signatures),
        computation_(program[id.computation]),
        index_(id.instruction),
        in_(computation_[id.instruction]),
        operands_(computation_.operands(id.instruction)),
        called_(computation_.called(id.instruction)) {}

  std::string broken() const {
    switch (in_.opcode) {
      case Opcode::kAllReduce:
      case Opcode::kAllReduceStart:
      case Opcode::kMap:
      case Opcode::kReduce:
      case Opcode::kReduceScatter:
      case Opcode::kReduceWindow:
      case Opcode::kScatter:
      case Opcode::kSort:
        return number_of_calls(1);
      case Opcode::kSelectAndScatter:
        return number_of_calls(2);
      case Opcode::kCall:
      case Opcode::kFusion:
        return first_of(
            number_of_calls(1), [this] { return hands_operands_on(called_[0]); },
            [this] { return returns(called_[0], in_.shape); });
      case Opcode::kAsyncStart:
        return first_of(number_of_calls(1), [this] { return async_start(); });
      case Opcode::kWhile:
        return first_of(number_of_calls(2), [this] { return loop(); });
      case Opcode::kConditional:
        return conditional();
      default:
        return {};
    }
  }

 private:
  Shape operand(std::size_t k) const { return computation_.shape_of(operands_[k]); }
  std::string name(ComputationId id) const { return quoted(program_[id].name()); }

  std::string number_of_calls(std::size_t wanted) const {
    if (called_.size() == wanted) return {};
    return fmt::format("must name {} computation(s), and names {}", wanted, called_.size());
  }

  std::string number_of_parameters(ComputationId callee, std::size_t given) const {
    const std::size_t wanted = signatures_.parameters(callee).size();
    if (wanted == given) return {};
    return fmt::format("hands {} value(s) to {}, which has {} parameter(s)", given, name(callee),
                       wanted);
  }

  std::string parameter_is(ComputationId callee, std::uint32_t number, Shape given) const {
    const Shape parameter = signatures_.parameters(callee)[number];
    if (compatible(given, parameter)) return {};
    return fmt::format(
        "hands a value to parameter {} of {} that is none of its shape; they differ{}", number,
        name(callee), difference(given, parameter));
  }

  std::string returns(ComputationId callee, Shape wanted) const {
    const Shape root = signatures_.result(callee);
    if (compatible(root, wanted)) return {};
    return fmt::format("has another shape than {} returns; they differ{}", name(callee),
                       difference(wanted, root));
  }

  std::string hands_operands_on(ComputationId callee) const {
    std::string broken = number_of_parameters(callee, operands_.size());
    for (std::uint32_t k = 0; k < operands_.size() && broken.empty(); ++k)
      broken = parameter_is(callee, k, operand(k));
    return broken;
  }

  /// ((operands…), result, context…)
  std::string async_start() const {
    const Shape shape = in_.shape;
    if (shape.tuple_size() < 2 || !shape.element(0).is_tuple())
      return fmt::format("has the shape ((operands), result, …), not {}", brief(shape));
    const Shape inputs = shape.element(0);
    if (inputs.tuple_size() != operands_.size())
      return fmt::format("has {} operand(s), but the shape {}", operands_.size(), brief(shape));
    for (std::uint32_t k = 0; k < operands_.size(); ++k)
      if (const Shape input = inputs.element(k); !compatible(input, operand(k)))
        return fmt::format("and its operand {} must have the same shape; they differ{}", k,
                           difference(input, operand(k)));
    return first_of(hands_operands_on(called_[0]),
                    [&] { return returns(called_[0], shape.element(1)); });
  }

  std::string loop() const {
    const ComputationId condition = called_[0];
    const ComputationId body = called_[1];
    if (!compatible(in_.shape, operand(0)))
      return "and its operand must have the same shape; they differ" +
             difference(in_.shape, operand(0));
    for (const ComputationId callee : {condition, body}) {
      std::string broken = first_of(number_of_parameters(callee, 1),
                                    [&] { return parameter_is(callee, 0, in_.shape); });
      if (!broken.empty()) return broken;
    }
    const Shape go_on = signatures_.result(condition);
    if (go_on.type() != ElementType::kPred || !go_on.dims().empty())
      return fmt::format("needs a condition that returns pred[], and {} returns {}",
                         name(condition), brief(go_on));
    return first_of(returns(body, in_.shape), [this] { return trip_count(); });
  }

  /// XLA writes a count that it knows; one below zero it cannot have meant.
  std::string trip_count() const {
    const std::string_view config = computation_.attribute(index_, "backend_config").value_or("");
    constexpr std::string_view kName = "known_trip_count";
    const std::size_t key = config.find(kName);
    if (key == std::string_view::npos) return {};
    const std::size_t number = config.find_first_not_of("\"\\:{n ", key + kName.size());
    if (number == std::string_view::npos || config[number] != '-') return {};
    const std::size_t end = config.find_first_not_of("0123456789", number + 1);
    return fmt::format("runs {} time(s)", config.substr(number, end - number));
  }

  std::string conditional() const {
    if (called_.empty()) return "names no branches";
    if (operands_.size() != called_.size() + 1)
      return fmt::format("needs a selector and an operand for each of {} branch(es), and has {}",
                         called_.size(), operands_.size());
    for (std::uint32_t k = 0; k < called_.size(); ++k) {
      std::string broken = first_of(
          number_of_parameters(called_[k], 1),
          [&] { return parameter_is(called_[k], 0, operand(k + 1)); },
          [&] { return returns(called_[k], in_.shape); });
      if (!broken.empty()) return broken;
    }
    return {};
  }

  const Program& program_;
  Signatures& signatures_;
  const Computation& computation_;
  InstructionIndex index_;
  const Instruction& in_;
  std::span<const Operand> operands_;
  std::span<const ComputationId> called_;
};

}  // namespace

void Signatures::look_up(ComputationId id, Entry& entry) {
  const Computation& computation = program_[id];
  entry.result = computation.shape_of(computation.root());
  entry.first = static_cast<std::uint32_t>(shapes_.size());
  entry.parameters = static_cast<std::uint32_t>(computation.parameters().size());
  for (const InstructionIndex i : computation.parameters()) shapes_.push_back(computation[i].shape);
}

std::string broken_call_rule(const Program& program, InstructionId id, Signatures& signatures) {
  return CallRules(program, id, signatures).broken();
}

}  // namespace spillway::internal
