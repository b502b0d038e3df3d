#include "model/hlo/inner_text.h"

#include <optional>
#include <utility>

#include "model/hlo/computation_reader.h"

namespace spillway::hlo {
namespace {

constexpr int kDeepest = 64;

/// The operand whose shape the result has; empty where the result's shape hangs on more.
std::optional<std::uint32_t> shape_giver(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBitcastConvert:
    case Opcode::kCompare:
    case Opcode::kComplex:
    case Opcode::kConvert:
    case Opcode::kImag:
    case Opcode::kIsFinite:
    case Opcode::kMap:
    case Opcode::kReal:
    case Opcode::kStochasticConvert:
      return std::nullopt;
    case Opcode::kClamp:
    case Opcode::kSelect:
      return 1;
    default:
      return is_elementwise(opcode) ? std::optional<std::uint32_t>(0) : std::nullopt;
  }
}

}  // namespace

void ComputationReader::infer_shape(Instruction& instruction) {
  const auto giver = shape_giver(instruction.opcode);
  if (!giver || *giver >= instruction.operand_count)
    return cursor_.fail_at(
        instruction.opcode_text,
        "the shape of " + quoted(instruction.opcode_text) + " does not follow from its operands",
        "write it in front: f32[8,128] " + std::string(instruction.opcode_text.substr(0, 40)) +
            "(…)");
  const Operand operand = parts_.operands[instruction.first_operand + *giver];
  instruction.shape = parts_.instructions[operand.instruction.index].shape.at(operand.node);
}

/// An operation in place of an operand has no attributes, and is called what it does.
Operand ComputationReader::read_inner_operation() {
  if (depth_ >= kDeepest) return cursor_.fail_here("operations nest too deep"), Operand{};
  ++depth_;
  Instruction instruction = read_operation();
  --depth_;
  instruction.name = instruction.opcode_text;
  calls_.start(instruction.name);
  if (!cursor_.failed()) finish_attributes(instruction);
  if (!cursor_.failed() && instruction.opcode == Opcode::kGetTupleElement)
    define_tuple_element(instruction);
  if (cursor_.failed()) return {};
  parts_.instructions.push_back(instruction);
  return {InstructionIndex(parts_.instructions.size() - 1), 0};
}

/// { p = f32[] parameter(0) ROOT n = f32[] negate(p) }, while another computation is being read.
ComputationId ComputationReader::read_inner_computation(std::string_view name) {
  if (depth_ >= kDeepest) return cursor_.fail_here("computations nest too deep"), ComputationId{};
  ++depth_;
  ComputationParts parts = std::exchange(parts_, {});
  TextTable<Operand> values = std::exchange(values_, {});
  const std::optional<Operand> root = root_, last = last_;
  cursor_.expect('{');
  read_instructions(name);
  ComputationId id;
  if (!cursor_.failed()) id = computations_.add(finish(name));
  parts_ = std::move(parts);
  values_ = std::move(values);
  root_ = root;
  last_ = last;
  --depth_;
  return id;
}

}  // namespace spillway::hlo
