#include <fmt/format.h>

#include <array>

#include "model/program/instruction_rules.h"

namespace spillway::internal {
namespace {

struct OperandCount {
  std::uint8_t least = 0, most = OpcodeRules::kAny;
};

constexpr OperandCount exactly(std::uint8_t n) { return {n, n}; }
constexpr OperandCount at_least(std::uint8_t n) { return {n, OpcodeRules::kAny}; }

constexpr OperandCount operands_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kParameter:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kRngGetAndUpdateState:
      return exactly(0);
    case Opcode::kAbs:
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceDone:
    case Opcode::kAllToAllDone:
    case Opcode::kAsyncDone:
    case Opcode::kAsyncUpdate:
    case Opcode::kBitcast:
    case Opcode::kBitcastConvert:
    case Opcode::kBroadcast:
    case Opcode::kCbrt:
    case Opcode::kCeil:
    case Opcode::kCholesky:
    case Opcode::kClz:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kCopyDone:
    case Opcode::kCopyStart:
    case Opcode::kCos:
    case Opcode::kDomain:
    case Opcode::kErf:
    case Opcode::kExp:
    case Opcode::kExpm1:
    case Opcode::kFft:
    case Opcode::kFloor:
    case Opcode::kGetDimensionSize:
    case Opcode::kImag:
    case Opcode::kIsFinite:
    case Opcode::kLog:
    case Opcode::kLog1p:
    case Opcode::kLogistic:
    case Opcode::kNegate:
    case Opcode::kNot:
    case Opcode::kOptimizationBarrier:
    case Opcode::kPopulationCount:
    case Opcode::kReal:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kReducePrecision:
    case Opcode::kReduceScatterDone:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kRoundAfz:
    case Opcode::kRoundEven:
    case Opcode::kRsqrt:
    case Opcode::kSendDone:
    case Opcode::kSign:
    case Opcode::kSin:
    case Opcode::kSlice:
    case Opcode::kSqrt:
    case Opcode::kTan:
    case Opcode::kTanh:
    case Opcode::kTranspose:
    case Opcode::kWhile:
      return exactly(1);
    case Opcode::kAdd:
    case Opcode::kAddDependency:
    case Opcode::kAnd:
    case Opcode::kAtan2:
    case Opcode::kCompare:
    case Opcode::kComplex:
    case Opcode::kConvolution:
    case Opcode::kDivide:
    case Opcode::kGather:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kMultiply:
    case Opcode::kOr:
    case Opcode::kPad:
    case Opcode::kPower:
    case Opcode::kRemainder:
    case Opcode::kSend:
    case Opcode::kSetDimensionSize:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kStochasticConvert:
    case Opcode::kSubtract:
    case Opcode::kTriangularSolve:
    case Opcode::kXor:
      return exactly(2);
    case Opcode::kClamp:
    case Opcode::kRaggedDot:
    case Opcode::kSelect:
    case Opcode::kSelectAndScatter:
      return exactly(3);
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kAllToAll:
    case Opcode::kAllToAllStart:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kConcatenate:
    case Opcode::kConditional:
    case Opcode::kDynamicSlice:
    case Opcode::kMap:
    case Opcode::kReduceScatter:
    case Opcode::kReduceScatterStart:
    case Opcode::kSort:
      return at_least(1);
    case Opcode::kDot:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kRaggedAllToAll:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kScaledDot:
      return at_least(2);
    case Opcode::kScatter:
      return at_least(3);
    default:
      return at_least(0);
  }
}

constexpr bool has_shape_rule(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAfterAll:
    case Opcode::kAsyncStart:  // its shape goes with what it calls
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kConstant:
    case Opcode::kFusion:
    case Opcode::kParameter:
    case Opcode::kUnknown:
    case Opcode::kWhile:
      return false;
    default:
      return true;
  }
}

constexpr bool has_call_rule(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kAsyncStart:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kFusion:
    case Opcode::kMap:
    case Opcode::kReduce:
    case Opcode::kReduceScatter:
    case Opcode::kReduceWindow:
    case Opcode::kScatter:
    case Opcode::kSelectAndScatter:
    case Opcode::kSort:
    case Opcode::kWhile:
      return true;
    default:
      return false;
  }
}

using RuleTable = std::array<OpcodeRules, static_cast<std::size_t>(Opcode::kUnknown) + 1>;

RuleTable make_rules() {
  RuleTable rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OperandCount operands = operands_of(opcode);
    const bool elementwise = is_elementwise(opcode);
    rules[i] = {operands.least, operands.most, elementwise, !elementwise && has_shape_rule(opcode),
                has_call_rule(opcode)};
  }
  return rules;
}

}  // namespace

const OpcodeRules& rules_of(Opcode opcode) {
  static const RuleTable rules = make_rules();
  return rules[static_cast<std::size_t>(opcode)];
}

std::string broken_operand_rule(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  const OpcodeRules& rules = rules_of(in.opcode);
  const std::uint32_t n = in.operand_count;
  if (n < rules.least_operands ||
      (n > rules.most_operands && rules.most_operands < OpcodeRules::kAny))
    return fmt::format("needs {}{} operand{}, and has {}",
                       rules.most_operands == rules.least_operands ? "" : "at least ",
                       rules.least_operands, rules.least_operands == 1 ? "" : "s", n);
  return {};
}

}  // namespace spillway::internal
