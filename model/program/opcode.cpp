#include "model/program/opcode.h"

#include <array>

namespace spillway {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({
#define SPILLWAY_OPCODE_NAME(id, name) name,
    SPILLWAY_OPCODES(SPILLWAY_OPCODE_NAME)
#undef SPILLWAY_OPCODE_NAME
        "unknown",
});

/// Names by hash, with linear probing; made by the compiler.
constexpr std::size_t kSlots = 512;
static_assert(kNames.size() * 2 < kSlots);

constexpr std::size_t slot_of(std::string_view name) {
  const auto byte = [name](std::size_t i) -> std::size_t {
    return static_cast<unsigned char>(name[i]);
  };
  const std::size_t last = name.size() - 1;
  return (name.size() * 37 + byte(0) * 5 + byte(last) * 131 + byte(last / 2) * 17 +
          byte(last / 3) * 71) %
         kSlots;
}

constexpr std::array<std::uint8_t, kSlots> index_by_name() {
  std::array<std::uint8_t, kSlots> index{};
  index.fill(static_cast<std::uint8_t>(Opcode::kUnknown));
  for (std::size_t i = 0; i + 1 < kNames.size(); ++i) {
    std::size_t slot = slot_of(kNames[i]);
    while (index[slot] != static_cast<std::uint8_t>(Opcode::kUnknown)) slot = (slot + 1) % kSlots;
    index[slot] = static_cast<std::uint8_t>(i);
  }
  return index;
}
constexpr auto kByName = index_by_name();

}  // namespace

std::string_view opcode_name(Opcode opcode) { return kNames[static_cast<std::size_t>(opcode)]; }

Opcode find_opcode(std::string_view name) {
  if (name.empty()) return Opcode::kUnknown;
  for (std::size_t slot = slot_of(name);; slot = (slot + 1) % kSlots) {
    const auto opcode = static_cast<Opcode>(kByName[slot]);
    if (opcode == Opcode::kUnknown || opcode_name(opcode) == name) return opcode;
  }
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

bool is_renaming(Opcode opcode) { return opcode == Opcode::kBitcast || opcode == Opcode::kReshape; }

bool is_control_flow(Opcode opcode) {
  return opcode == Opcode::kWhile || opcode == Opcode::kCall || opcode == Opcode::kConditional;
}

bool runs_what_it_calls(Opcode opcode) {
  return is_control_flow(opcode) || opcode == Opcode::kAsyncStart;
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
