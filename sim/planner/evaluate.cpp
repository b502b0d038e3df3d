#include "sim/planner/evaluate.h"

#include <algorithm>

#include "model/diagnostics/slice_offsets.h"
#include "sim/lowering/run_time.h"
#include "sim/rewrite/place_residuals.h"

namespace spillway {
namespace {

std::vector<std::string> reasons_to_stay(const Program& program, const MemoryAssignment& memory,
                                         const ResidualTable& table) {
  std::vector<std::string> reasons;
  for (const Residual& residual : table.residuals)
    reasons.push_back(why_not_movable(program, memory, residual));
  return reasons;
}

/// Whether this build of XLA fetches the wrong layers of an offloaded stack: then it would of the
/// others too.
bool reloads_wrong_layers(const Program& program, const MemoryAssignment& memory,
                          const ResidualTable& table) {
  return std::ranges::any_of(table.residuals, [&](const Residual& residual) {
    return find_wrong_slice(program, memory.schedule, residual).has_value();
  });
}

}  // namespace

Evaluator::Evaluator(const Program& program, const Schedule& schedule,
                     const HardwareProfile& profile, const Topology& topology,
                     const NameList& names, const Budget& budget,
                     std::optional<CopyStreams> copy_streams)
    : program_(program),
      profile_(profile),
      topology_(topology),
      budget_(budget),
      copy_streams_(copy_streams),
      memory_(assign_memory(program, schedule)),
      residuals_(find_residuals(program, memory_, names)),
      handles_(make_handles(residuals_, !names.names.empty(),
                            reasons_to_stay(program, memory_, residuals_))),
      costs_(costs(program, profile, topology)) {
  if (!reloads_wrong_layers(program, memory_, residuals_)) return;
  for (Handle& handle : handles_)
    if (handle.fixed_because.empty())
      handle.device_only_because =
          "this build of XLA reloads the wrong layers of offloaded stacks (reads-wrong-slice)";
}

Program Evaluator::rewrite(const Policy& policy) const {
  std::vector<PlacementChange> changes;
  for (std::size_t k = 0; k < handles_.size(); ++k) {
    if (policy[k] == Choice::kRecompute || !handles_[k].fixed_because.empty()) continue;
    for (const ResidualId id : handles_[k].residuals)
      changes.push_back(
          {id, policy[k] == Choice::kKeep ? Placement::kDevice : Placement::kPinnedHost});
  }
  return place_residuals(program_, memory_, residuals_, changes);
}

Result<SimResult> Evaluator::simulate_policy(const Policy& policy) const {
  const Program planned = rewrite(policy);
  const Schedule schedule = text_schedule(planned).value();
  const MemoryAssignment memory = assign_memory(planned, schedule);
  return simulate(planned, schedule, memory, profile_, topology_,
                  {.base_costs = &costs_, .copy_streams = copy_streams_});
}

Result<PolicyCase> Evaluator::evaluate(const Policy& policy) const {
  const Result<SimResult> simulated = simulate_policy(policy);
  if (!simulated.ok()) return simulated.error();
  const SimResult& sim = *simulated;
  PolicyCase result;
  result.policy = policy;
  result.step = sim.step;
  result.peak_device = sim.memory.total_device;
  result.host = host_bytes(sim.memory);
  result.device_to_host = sim.traffic.device_to_host;
  result.host_to_device = sim.traffic.host_to_device;
  result.exposed_copies = sim.exposed_device_to_host + sim.exposed_host_to_device;
  result.dot_flops = sim.flops.dot_per_step.value();
  result.fit = check_fit(sim.memory, budget_);
  return result;
}

/// Whether an instruction is the same in every policy: it neither copies nor reads, writes or makes
/// a stack.
bool Evaluator::stays(const std::set<BufferId>& stacks, InstructionId id) const {
  const Instruction& in = program_[id];
  if (is_async_start(in.opcode) || is_async_done(in.opcode) || !costs_.cost(id).uses_sms)
    return false;
  const auto is_stack = [&](ValueId value) {
    return stacks.contains(memory_.liveness.buffer_of[value]);
  };
  for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node)
    if (is_stack(memory_.values.at(id, node))) return false;
  return std::ranges::none_of(
      program_[id.computation].operands(id.instruction),
      [&](const Operand& operand) { return is_stack(memory_.values.at(id.computation, operand)); });
}

Seconds Evaluator::lower_bound() const {
  std::set<BufferId> stacks;
  for (const Residual& residual : residuals_.residuals) stacks.insert(residual.stack);
  const auto time_of = [&](InstructionId id) {
    return stays(stacks, id) ? costs_.cost(id).time : Seconds(0);
  };
  return run_times(program_, costs_, BranchTaken::kShortest, time_of)[program_.entry];
}

}  // namespace spillway
