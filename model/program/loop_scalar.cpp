#include "model/program/loop_scalar.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "model/base/json_value.h"
#include "model/program/call_graph.h"

namespace spillway {
namespace {

// Empty where the result does not fit 64 bits.
std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}
std::optional<std::int64_t> subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? std::nullopt : std::optional(difference);
}
/// Whether a type holds a number; what does not fit wraps around, and is not followed.
bool fits_type(std::int64_t number, ElementType type) {
  const int bits = element_bits(type);
  switch (type) {
    case ElementType::kPred:
      return number == 0 || number == 1;
    case ElementType::kS8:
    case ElementType::kS16:
    case ElementType::kS32:
      return number >= -(std::int64_t{1} << (bits - 1)) && number < std::int64_t{1} << (bits - 1);
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
      return number >= 0 && number < std::int64_t{1} << bits;
    case ElementType::kS64:
      return true;
    case ElementType::kU64:
      return number >= 0;
    default:
      return false;
  }
}

/// Works out a scalar integer at a moment of the program.
class ScalarEvaluator {
 public:
  ScalarEvaluator(const Program& program, Follow follow) : program_(program), follow_(follow) {}

  std::optional<std::int64_t> value(const CallFrame& frame, Operand operand) {
    if (++steps_ > kMostSteps) return std::nullopt;
    const Computation& computation = program_[frame.computation];
    const Instruction& in = computation[operand.instruction];
    const auto operands = computation.operands(operand.instruction);
    switch (in.opcode) {
      case Opcode::kConstant:
        return constant(in.literal);
      case Opcode::kParameter:
        return parameter(frame, parameter_number(in), operand.node);
      case Opcode::kFusion:
      case Opcode::kCall: {
        const CallFrame inner{computation.called(operand.instruction)[0],
                              InstructionId{frame.computation, operand.instruction}, &frame};
        const auto root =
            root_element(inner.computation, program_[inner.computation].root(), operand.node);
        return root ? value(inner, *root) : std::nullopt;
      }
      case Opcode::kWhile: {
        const auto trips = known_trip_count(computation, operand.instruction);
        if (follow_ == Follow::kCounter || !trips) return std::nullopt;
        return carried({{frame.computation, operand.instruction}, *trips}, operand.node);
      }
      case Opcode::kTuple:
        return std::nullopt;
      default: {
        const auto result =
            operation(frame, in, computation.attributes(operand.instruction), operands);
        return result && fits_type(*result, in.shape.type()) ? result : std::nullopt;
      }
    }
  }

 private:
  static constexpr int kMostSteps = 1000;

  /// "4" or "true".
  static std::optional<std::int64_t> constant(std::string_view literal) {
    if (literal == "true" || literal == "false") return literal == "true";
    return to_integer(literal);
  }

  std::optional<std::int64_t> parameter(const CallFrame& frame, std::uint32_t number,
                                        ShapeNodeIndex node) {
    if (!frame.caller) return frame.loop ? carried(*frame.loop, node) : std::nullopt;
    const auto operands = program_[frame.outer->computation].operands(frame.caller->instruction);
    if (number >= operands.size()) return std::nullopt;
    Operand outer = operands[number];
    outer.node += node;
    return value(*frame.outer, outer);
  }

  /// What a loop's state holds at the begin of an iteration.
  std::optional<std::int64_t> carried(LoopMoment at, ShapeNodeIndex node) {
    const auto counter = at.counter ? at.counter : find_counter(program_, at.loop);
    if (counter && node == counter->node) {
      const auto moved = checked_multiply(at.iteration, counter->step);
      return moved ? add(counter->init, *moved) : std::nullopt;
    }
    if (follow_ == Follow::kCounter) return std::nullopt;
    const ComputationId id = at.iteration == 0 ? at.loop.computation : body_of(program_, at.loop);
    const Operand state =
        at.iteration == 0 ? program_[id].operands(at.loop.instruction)[0] : program_[id].root();
    const auto element = root_element(id, state, node);
    if (!element) return std::nullopt;
    CallFrame frame{id};
    if (at.iteration > 0) frame.loop = LoopMoment{at.loop, at.iteration - 1, counter};
    return value(frame, *element);
  }

  /// Element `node` of a value, looking through a tuple: at a computation's root, say.
  std::optional<Operand> root_element(ComputationId id, Operand root, ShapeNodeIndex node) const {
    const Computation& computation = program_[id];
    const Instruction& last = computation[root.instruction];
    if (node == 0 || last.opcode != Opcode::kTuple)
      return Operand{root.instruction, root.node + node};
    for (std::uint32_t k = 0; k < last.shape.tuple_size(); ++k)
      if (last.shape.element_node(k) == node) return computation.operands(root.instruction)[k];
    return std::nullopt;
  }

  std::optional<std::int64_t> operation(const CallFrame& frame, const Instruction& in,
                                        std::span<const Attribute> attributes,
                                        std::span<const Operand> operands) {
    std::vector<std::int64_t> x;
    for (const Operand& operand : operands) {
      const auto one = value(frame, operand);
      if (!one) return std::nullopt;
      x.push_back(*one);
    }
    switch (in.opcode) {
      case Opcode::kBitcast:
      case Opcode::kConvert:
      case Opcode::kCopy:
      case Opcode::kReshape:
        return x[0];
      case Opcode::kNegate:
        return subtract(0, x[0]);
      case Opcode::kAdd:
        return add(x[0], x[1]);
      case Opcode::kSubtract:
        return subtract(x[0], x[1]);
      case Opcode::kMultiply:
        return checked_multiply(x[0], x[1]);
      case Opcode::kMaximum:
        return std::max(x[0], x[1]);
      case Opcode::kMinimum:
        return std::min(x[0], x[1]);
      case Opcode::kClamp:
        return std::min(std::max(x[1], x[0]), x[2]);
      case Opcode::kSelect:
        return x[0] != 0 ? x[1] : x[2];
      case Opcode::kCompare:
        return compare(attributes, x);
      default:
        return std::nullopt;
    }
  }

  static std::optional<std::int64_t> compare(std::span<const Attribute> attributes,
                                             const std::vector<std::int64_t>& x) {
    for (const Attribute& attribute : attributes) {
      if (attribute.name != "direction") continue;
      if (attribute.value == "LT") return x[0] < x[1];
      if (attribute.value == "LE") return x[0] <= x[1];
      if (attribute.value == "GT") return x[0] > x[1];
      if (attribute.value == "GE") return x[0] >= x[1];
      if (attribute.value == "EQ") return x[0] == x[1];
      if (attribute.value == "NE") return x[0] != x[1];
    }
    return std::nullopt;
  }

  const Program& program_;
  const Follow follow_;
  int steps_ = 0;
};

}  // namespace

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

std::optional<LoopCounter> find_counter(const Program& program, InstructionId loop) {
  const Computation& computation = program[loop.computation];
  const std::string_view config =
      computation.attribute(loop.instruction, "backend_config").value_or("");
  const auto index =
      to_integer(json_value(json_value(config, "known_induction_variable"), "tuple_index"));
  const std::string_view steps = json_value(config, "known_init_step");
  const auto init = to_integer(json_value(steps, "init"));
  const auto step = to_integer(json_value(steps, "step"));
  const Shape carried = computation[loop.instruction].shape;
  if (!index || !init || !step || *step == 0 || *index < 0 || *index >= carried.tuple_size())
    return std::nullopt;
  return LoopCounter{carried.element_node(static_cast<std::uint32_t>(*index)), *init, *step};
}

std::optional<std::int64_t> scalar_value(const Program& program, const CallFrame& frame,
                                         Operand operand, Follow follow) {
  return ScalarEvaluator(program, follow).value(frame, operand);
}

}  // namespace spillway
