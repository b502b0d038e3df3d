#include "model/program/opcode.h"

#include <array>
#include <unordered_map>

namespace spillway {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({
#define SPILLWAY_OPCODE_NAME(id, name) name,
    SPILLWAY_OPCODES(SPILLWAY_OPCODE_NAME)
#undef SPILLWAY_OPCODE_NAME
        "unknown",
});

std::unordered_map<std::string_view, Opcode> index_by_name() {
  std::unordered_map<std::string_view, Opcode> index;
  for (std::size_t i = 0; i + 1 < kNames.size(); ++i)
    index.emplace(kNames[i], static_cast<Opcode>(i));
  return index;
}

}  // namespace

std::string_view opcode_name(Opcode opcode) { return kNames[static_cast<std::size_t>(opcode)]; }

Opcode find_opcode(std::string_view name) {
  static const std::unordered_map<std::string_view, Opcode> index = index_by_name();
  const auto found = index.find(name);
  return found == index.end() ? Opcode::kUnknown : found->second;
}

bool is_elementwise(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAbs:
    case Opcode::kAdd:
    case Opcode::kAnd:
    case Opcode::kAtan2:
    case Opcode::kBitcastConvert:
    case Opcode::kCbrt:
    case Opcode::kCeil:
    case Opcode::kClamp:
    case Opcode::kClz:
    case Opcode::kCompare:
    case Opcode::kComplex:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kCos:
    case Opcode::kDivide:
    case Opcode::kErf:
    case Opcode::kExp:
    case Opcode::kExpm1:
    case Opcode::kFloor:
    case Opcode::kImag:
    case Opcode::kIsFinite:
    case Opcode::kLog:
    case Opcode::kLog1p:
    case Opcode::kLogistic:
    case Opcode::kMap:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kMultiply:
    case Opcode::kNegate:
    case Opcode::kNot:
    case Opcode::kOr:
    case Opcode::kPopulationCount:
    case Opcode::kPower:
    case Opcode::kReal:
    case Opcode::kReducePrecision:
    case Opcode::kRemainder:
    case Opcode::kRoundAfz:
    case Opcode::kRoundEven:
    case Opcode::kRsqrt:
    case Opcode::kSelect:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kSign:
    case Opcode::kSin:
    case Opcode::kSqrt:
    case Opcode::kStochasticConvert:
    case Opcode::kSubtract:
    case Opcode::kTan:
    case Opcode::kTanh:
    case Opcode::kXor:
      return true;
    default:
      return false;
  }
}

bool is_collective(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kRaggedAllToAll:
    case Opcode::kReduceScatter:
      return true;
    default:
      return false;
  }
}

bool is_async_start(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduceStart:
    case Opcode::kAllToAllStart:
    case Opcode::kAsyncStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kCopyStart:
    case Opcode::kReduceScatterStart:
    case Opcode::kRecv:
    case Opcode::kSend:
      return true;
    default:
      return false;
  }
}

bool is_async_done(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceDone:
    case Opcode::kAllToAllDone:
    case Opcode::kAsyncDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kCopyDone:
    case Opcode::kReduceScatterDone:
    case Opcode::kRecvDone:
    case Opcode::kSendDone:
      return true;
    default:
      return false;
  }
}

}  // namespace spillway
