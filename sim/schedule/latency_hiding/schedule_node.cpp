#include "sim/schedule/latency_hiding/schedule_node.h"

#include <algorithm>
#include <charconv>

#include "model/program/backend_config.h"

namespace spillway {
namespace {

/// `key="value"` of the frontend attributes; empty when absent.
std::string_view frontend_value(const Computation& computation, InstructionIndex i,
                                std::string_view key) {
  std::string_view text = computation.attribute(i, "frontend_attributes").value_or("");
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos || text.substr(at + key.size(), 2) != "=\"") return "";
  text.remove_prefix(at + key.size() + 2);
  return text.substr(0, text.find('"'));
}

class NodeDescriber {
 public:
  NodeDescriber(const ScheduleInput& input, ComputationId id)
      : input_(input), id_(id), computation_(input.program[id]) {}

  void describe(ScheduleNode& node, const IdVector<ComputationId, ResourceCounts>& needs_of) const;

 private:
  void describe_async(ScheduleNode& node, const AsyncOperation& operation) const;
  void take_hints(ScheduleNode& node) const;
  bool fills(InstructionIndex i) const;
  ResourceSet loop_resources(ComputationId body, bool occupied) const;
  bool is_nop(InstructionIndex i) const;

  const ScheduleInput& input_;
  ComputationId id_;
  const Computation& computation_;
};

void NodeDescriber::describe(ScheduleNode& node,
                             const IdVector<ComputationId, ResourceCounts>& needs_of) const {
  const InstructionIndex i = node.instruction();
  const InstructionId id{id_, i};
  node.cost = input_.estimator.node_cost(input_.program, id);
  node.is_nop = is_nop(i);
  take_hints(node);
  if (const auto operation = async_operation(input_.program, id)) {
    describe_async(node, *operation);
    return;
  }
  if (!is_control_flow(computation_[i].opcode)) return;
  for (const ComputationId callee : computation_.called(i))
    for (std::size_t kind = 0; kind < kAsyncResources; ++kind)
      node.needs[kind] = std::max(node.needs[kind], needs_of[callee][kind]);
  if (computation_[i].opcode != Opcode::kWhile) return;
  node.occupies = loop_resources(computation_.called(i)[1], true);
  node.releases = loop_resources(computation_.called(i)[1], false);
}

void NodeDescriber::describe_async(ScheduleNode& node, const AsyncOperation& operation) const {
  const bool is_start = operation.role == AsyncOperation::Role::kStart;
  node.is_start = is_start && operation.is_hidden;
  node.is_done = !is_start && operation.is_hidden;
  node.offloads_slice = is_start && is_offload_of_slice(input_.program, {id_, node.instruction()});
  // From behind, a done begins what its start ends.
  (is_start ? node.releases : node.occupies) = set_of(operation.resource);
  if (!is_start) node.needs[static_cast<std::size_t>(operation.resource)] = 1;
}

/// Whether a fusion makes much out of nothing, as the zeros that a loop begins to add to. XLA of
/// jaxlib 0.12.0.1 runs these as late as it can; found in its dumps, where nothing else explains
/// the order of any of them, and 1 MiB is where it begins.
bool NodeDescriber::fills(InstructionIndex i) const {
  constexpr std::int64_t kLarge = std::int64_t{1} << 20;
  const Instruction& in = computation_[i];
  if (in.opcode != Opcode::kFusion || in.operand_count > 0) return false;
  std::int64_t bytes = 0;
  for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node) {
    const Shape part = in.shape.at(node);
    if (part.is_array() && !is_host(part.space())) bytes += part.bytes().value();
  }
  return bytes >= kLarge;
}

void NodeDescriber::take_hints(ScheduleNode& node) const {
  const InstructionIndex i = node.instruction();
  node.runs_early = config_contains(computation_, i, "\"force_earliest_schedule\":true");
  node.runs_late = fills(i);
  const std::string_view hint = frontend_value(computation_, i, "scheduler_hint");
  if (hint.empty()) return;
  const Opcode opcode = computation_[i].opcode;
  const bool is_start = is_async_start(opcode), is_done = is_async_done(opcode);
  const bool is_call = opcode == Opcode::kCustomCall;
  if ((hint == "force_early" && is_call) || (hint == "force_delay_async" && is_done))
    node.runs_late = true;
  if ((hint == "force_delay" && (is_call || is_start || is_done)) ||
      (hint == "force_delay_async" && is_start)) {
    node.runs_early = true;
    const std::string_view priority = frontend_value(computation_, i, "scheduler_delay_priority");
    std::from_chars(priority.data(), priority.data() + priority.size(), node.early_priority);
  }
}

/// What the dones of a loop's body, and of loops within, occupy, or their starts release.
ResourceSet NodeDescriber::loop_resources(ComputationId body, bool occupied) const {
  ResourceSet found = 0;
  const Computation& computation = input_.program[body];
  for (const InstructionIndex i : computation.instructions()) {
    if (computation[i].opcode == Opcode::kWhile)
      found |= loop_resources(computation.called(i)[1], occupied);
    else if (const auto operation = async_operation(input_.program, {body, i});
             operation && (operation->role == AsyncOperation::Role::kDone) == occupied)
      found |= set_of(operation->resource);
  }
  return found;
}

bool NodeDescriber::is_nop(InstructionIndex i) const {
  switch (computation_[i].opcode) {
    case Opcode::kBitcast:
    case Opcode::kBroadcast:
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kParameter:
      return true;
    case Opcode::kTuple: {
      const auto uses = computation_.uses(i);
      return !uses.empty() && computation_[uses[0].user].opcode == Opcode::kWhile &&
             std::ranges::all_of(uses, [&](const Use& use) { return use.user == uses[0].user; });
    }
    default:
      return false;
  }
}

}  // namespace

void describe_instruction(const ScheduleInput& input, ComputationId id,
                          const IdVector<ComputationId, ResourceCounts>& needs_of,
                          ScheduleNode& node) {
  NodeDescriber(input, id).describe(node, needs_of);
}

}  // namespace spillway
