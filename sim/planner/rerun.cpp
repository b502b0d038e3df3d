#include "sim/planner/rerun.h"

#include <algorithm>

#include "model/cost/measured_costs.h"

namespace spillway {

Result<PlannedStep> make_planned_step(const Evaluator& evaluator, const PlanResult& plan,
                                      const PolicyCase& outcome) {
  PlannedStep step;
  step.outcome = outcome;
  Result<Program> program = evaluator.rewrite_planned(outcome.policy, plan.order);
  if (!program.ok()) return program.error();
  step.program = std::move(program).value();
  step.memory = assign_memory(step.program, text_schedule(step.program).value());
  return step;
}

std::vector<PolicyCase> shown_policies(const PlanResult& plan) {
  std::vector<PolicyCase> shown;
  const auto add = [&](const PolicyCase& outcome) {
    const bool known = std::ranges::find(shown, outcome.policy, &PolicyCase::policy) != shown.end();
    if (!known && is_allowed(plan.handles, outcome.policy)) shown.push_back(outcome);
  };
  add(plan.best);
  for (const PolicyCase& outcome : plan.alternatives) add(outcome);
  for (const NamedCase& baseline : plan.baselines) add(baseline.result);
  for (const PolicyCase& outcome : plan.pareto) add(outcome);
  return shown;
}

std::optional<Policy> without_host(const std::vector<Handle>& handles, const Policy& policy,
                                   Choice instead) {
  Policy other = policy;
  for (std::size_t k = 0; k < policy.size(); ++k) {
    if (policy[k] != Choice::kOffload || !handles[k].fixed_because.empty()) continue;
    const bool recomputed = instead == Choice::kRecompute && handles[k].saved_because.empty();
    other[k] = recomputed ? Choice::kRecompute : Choice::kKeep;
  }
  if (other == policy) return std::nullopt;
  return other;
}

namespace {

CostTable costs_there(const Evaluator& evaluator, const HardwareProfile& profile) {
  const Program& program = evaluator.program();
  CostTable there = costs(program, profile, evaluator.topology());
  if (!evaluator.is_anchored()) return there;
  const CostTable here = costs(program, evaluator.profile(), evaluator.topology());
  return carried_over(program, evaluator.cost_table(), here, there);
}

}  // namespace

OtherMachine::OtherMachine(const Evaluator& evaluator, HardwareProfile profile)
    : evaluator_(evaluator),
      profile_(std::move(profile)),
      costs_(costs_there(evaluator, profile_)) {}

Result<SimResult> OtherMachine::run(const PlannedStep& step) const {
  return simulate(step.program, text_schedule(step.program).value(), step.memory, profile_,
                  evaluator_.topology(),
                  {.base_costs = &costs_, .copy_streams = evaluator_.copy_streams()});
}

HardwareProfile with_link(HardwareProfile profile, double factor) {
  HostLink& link = profile.link;
  for (Figure<BytesPerSecond>* rate :
       {&link.host_to_device, &link.device_to_host, &link.both_directions})
    rate->value = rate->value * factor;
  if (link.host_to_device_beside)
    link.host_to_device_beside->value = link.host_to_device_beside->value * factor;
  return profile;
}

HardwareProfile with_link_rates(HardwareProfile profile, BytesPerSecond out, BytesPerSecond in) {
  HostLink& link = profile.link;
  link.device_to_host.value = out;
  link.host_to_device.value = in;
  link.both_directions.value = out + in;
  link.host_to_device_beside = {in, {}};
  Host& host = profile.host;
  const BytesPerSecond all = (out + in) * static_cast<double>(host.gpus_per_cpu.value.value());
  host.memory_bandwidth.value = std::max(host.memory_bandwidth.value, all);
  host.memory_bandwidth_read.reset();
  host.memory_bandwidth_write.reset();
  return profile;
}

HardwareProfile with_compute(HardwareProfile profile, double factor) {
  for (FigureTable<FlopsPerSecond>* peaks :
       {&profile.device.matrix_peak, &profile.device.vector_peak})
    for (auto& [type, peak] : *peaks) peak.value = peak.value * factor;
  return profile;
}

HardwareProfile with_hbm(HardwareProfile profile, double factor) {
  profile.device.hbm_bandwidth.value = profile.device.hbm_bandwidth.value * factor;
  return profile;
}

}  // namespace spillway
