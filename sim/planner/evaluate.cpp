#include "sim/planner/evaluate.h"

#include <algorithm>
#include <set>

#include "model/program/call_graph.h"
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

}  // namespace

Evaluator::Evaluator(const Program& program, const Schedule& schedule,
                     const HardwareProfile& profile, const Topology& topology,
                     const NameList& names, const Budget& budget)
    : program_(program),
      profile_(profile),
      topology_(topology),
      budget_(budget),
      memory_(assign_memory(program, schedule)),
      residuals_(find_residuals(program, memory_, names)),
      handles_(make_handles(residuals_, !names.names.empty(),
                            reasons_to_stay(program, memory_, residuals_))),
      costs_(costs(program, profile, topology)) {}

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

SimResult Evaluator::simulate_policy(const Policy& policy) const {
  const Program planned = rewrite(policy);
  const Schedule schedule = text_schedule(planned).value();
  const MemoryAssignment memory = assign_memory(planned, schedule);
  return simulate(planned, schedule, memory, profile_, topology_, {.base_costs = &costs_});
}

PolicyCase Evaluator::evaluate(const Policy& policy) const {
  const SimResult sim = simulate_policy(policy);
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

Seconds Evaluator::lower_bound() const {
  std::set<BufferId> stacks;
  for (const Residual& residual : residuals_.residuals) stacks.insert(residual.stack);
  const auto is_stack = [&](ValueId value) {
    return stacks.contains(memory_.liveness.buffer_of[value]);
  };
  // Instructions that read, write or start a stack may change; all others run in every policy.
  const auto stays = [&](InstructionId id) {
    const Instruction& in = program_[id];
    if (is_async_start(in.opcode) || is_async_done(in.opcode) || !costs_.cost(id).uses_sms)
      return false;
    for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node)
      if (is_stack(memory_.values.at(id, node))) return false;
    return std::ranges::none_of(program_[id.computation].operands(id.instruction),
                                [&](const Operand& operand) {
                                  return is_stack(memory_.values.at(id.computation, operand));
                                });
  };
  // Of one run of each computation on the main stream, in whole picoseconds as they are simulated.
  IdVector<ComputationId, double> picoseconds(program_.computations.size(), 0);
  for (const ComputationId id : computation_post_order(program_)) {
    if (!costs_.contains(id)) continue;
    const Computation& computation = program_[id];
    for (const InstructionIndex i : computation.instructions()) {
      const auto called = computation.called(i);
      switch (computation[i].opcode) {
        case Opcode::kWhile:
          picoseconds[id] += picoseconds[called[1]] *
                             static_cast<double>(known_trip_count(computation, i).value_or(1));
          break;
        case Opcode::kCall:
          picoseconds[id] += picoseconds[called[0]];
          break;
        case Opcode::kConditional:  // whichever branch runs
          picoseconds[id] += picoseconds[*std::ranges::min_element(
              called, {}, [&](ComputationId branch) { return picoseconds[branch]; })];
          break;
        default:
          if (stays({id, i}))
            picoseconds[id] += static_cast<double>(to_sim_time(costs_.cost({id, i}).time).value());
      }
    }
  }
  return Seconds(picoseconds[program_.entry] * 1e-12);
}

}  // namespace spillway
