#include "sim/schedule/latency/tshirt_estimator.h"

#include <charconv>

#include "sim/schedule/latency_hiding/async_operation.h"

namespace spillway {
namespace {

constexpr double kLowCost = 1, kMediumCost = 1000, kHighCost = 5000;
constexpr double kLowLatency = 1, kHighLatency = 5000;
constexpr Bytes kCostlyAllReduce{std::int64_t{30} << 20};
constexpr double kCostlyAllReduceFactor = 4;

bool runs_nothing(Opcode opcode) {
  switch (opcode) {
    case Opcode::kGetTupleElement:
    case Opcode::kBitcast:
    case Opcode::kConstant:
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kOptimizationBarrier:
      return true;
    default:
      return false;
  }
}

/// Whether an async start wraps a fusion that is a collective of Triton's, or a done ends one.
bool starts_or_ends_collective_kernel(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  InstructionIndex start = id.instruction;
  if (computation[start].opcode == Opcode::kAsyncDone)
    start = computation.operands(start)[0].instruction;
  if (computation[start].opcode != Opcode::kAsyncStart) return false;
  const Computation& wrapped = program[computation.called(start)[0]];
  const InstructionIndex inner = wrapped.root().instruction;
  if (wrapped[inner].opcode != Opcode::kFusion) return false;
  const Computation& fused = program[wrapped.called(inner)[0]];
  for (const InstructionIndex i : fused.instructions())
    if (is_collective(fused[i].opcode)) return true;
  return false;
}

bool has_role(const Program& program, InstructionId id, AsyncOperation::Role role) {
  const auto operation = async_operation(program, id);
  return operation && operation->role == role;
}

}  // namespace

bool is_async_pair(const Program& program, ComputationId computation, InstructionIndex from,
                   InstructionIndex to) {
  return has_role(program, {computation, from}, AsyncOperation::Role::kStart) &&
         has_role(program, {computation, to}, AsyncOperation::Role::kDone);
}

bool is_collective_start_or_done(const Program& program, InstructionId id) {
  if (starts_or_ends_collective_kernel(program, id)) return true;
  const auto operation = async_operation(program, id);
  if (!operation) return false;
  switch (operation->resource) {
    case AsyncResource::kCollectives:
    case AsyncResource::kSend:
    case AsyncResource::kReceive:
      return true;
    default:
      return false;
  }
}

std::optional<double> cost_from_metadata(const Computation& computation, InstructionIndex i) {
  const auto attributes = computation.attribute(i, "frontend_attributes");
  constexpr std::string_view kKey = "latency_metadata=\"";
  if (!attributes) return std::nullopt;
  const std::size_t at = attributes->find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view text = attributes->substr(at + kKey.size());
  std::int64_t nanoseconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), nanoseconds);
  if (error != std::errc() || stop == text.data() + text.size() || *stop != '"')
    return std::nullopt;
  return static_cast<double>(nanoseconds) / 1000;
}

double TshirtEstimator::node_cost(const Program& program, InstructionId instruction) const {
  const Computation& computation = program[instruction.computation];
  const InstructionIndex i = instruction.instruction;
  const Opcode opcode = computation[i].opcode;
  if (runs_nothing(opcode)) return 0;
  switch (opcode) {
    case Opcode::kCustomCall:
      return cost_from_metadata(computation, i).value_or(kMediumCost);
    case Opcode::kFusion:
      if (has_attribute(computation, i, "kind", "kLoop")) return kMediumCost;
      return has_attribute(computation, i, "kind", "kOutput") ? kHighCost : kLowCost;
    case Opcode::kConvolution:
      return kHighCost;
    default:
      return kLowCost;
  }
}

double TshirtEstimator::latency(const Program& program, ComputationId computation,
                                InstructionIndex from, InstructionIndex to) const {
  if (!is_async_pair(program, computation, from, to)) return kLowLatency;
  const Instruction& start = program[computation][from];
  if (costly_all_reduce_ && start.opcode == Opcode::kAllReduceStart &&
      start.shape.array_bytes() > kCostlyAllReduce)
    return kHighLatency * kCostlyAllReduceFactor;
  return kHighLatency;
}

}  // namespace spillway
