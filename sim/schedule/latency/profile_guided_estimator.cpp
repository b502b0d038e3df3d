#include "sim/schedule/latency/profile_guided_estimator.h"

#include "sim/schedule/latency/tshirt_estimator.h"

namespace spillway {

double ProfileGuidedEstimator::node_cost(const Program& program, InstructionId instruction) const {
  if (is_collective_start_or_done(program, instruction)) return 1;
  const auto cost = profile_.cost_us.find(
      scheduling_name(program[instruction.computation], instruction.instruction));
  return cost == profile_.cost_us.end() ? rest_->node_cost(program, instruction) : cost->second;
}

double ProfileGuidedEstimator::latency(const Program& program, ComputationId computation,
                                       InstructionIndex from, InstructionIndex to) const {
  const Computation& in = program[computation];
  std::vector<std::string_view> names{scheduling_name(in, from)};
  if (in[from].opcode == Opcode::kAsyncStart) {
    const Computation& wrapped = program[in.called(from)[0]];
    names.push_back(scheduling_name(wrapped, wrapped.root().instruction));
  }
  const std::string target(scheduling_name(in, to));
  for (const std::string_view name : names)
    if (const auto found = profile_.latency_us.find({std::string(name), target});
        found != profile_.latency_us.end())
      return found->second;
  if (is_async_pair(program, computation, from, to))
    for (const std::string_view name : names)
      if (const auto cost = profile_.cost_us.find(name); cost != profile_.cost_us.end())
        return cost->second;
  return rest_->latency(program, computation, from, to);
}

}  // namespace spillway
