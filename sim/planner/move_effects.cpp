#include "sim/planner/move_effects.h"

#include <algorithm>
#include <set>

#include "model/cost/host_rates.h"
#include "model/cost/run_time.h"

namespace spillway {
namespace {

/// Kernels of the main stream, by where they run.
class KernelTimes {
 public:
  explicit KernelTimes(const Evaluator& evaluator)
      : program_(evaluator.program()),
        costs_(evaluator.cost_table()),
        times_(run_times(program_, costs_, BranchTaken::kShortest,
                         [this](InstructionId id) { return kernel(id); })) {}

  /// Of a loop, all its iterations.
  Seconds of_loop(InstructionId loop) const {
    return time_of_called(program_, loop, times_, BranchTaken::kShortest);
  }

  Seconds of_step() const { return times_[program_.entry]; }

  /// Of what the entry runs behind its last loop.
  Seconds behind_loops(const FlatSchedule& schedule) const {
    Seconds total;
    for (const InstructionId id : schedule.order) {
      if (id.computation != program_.entry) continue;
      if (program_[id].opcode == Opcode::kWhile)
        total = Seconds(0);
      else if (is_control_flow(program_[id].opcode))
        total += of_loop(id);
      else
        total += kernel(id);
    }
    return total;
  }

 private:
  Seconds kernel(InstructionId id) const {
    const Opcode opcode = program_[id].opcode;
    if (is_async_start(opcode) || is_async_done(opcode)) return Seconds(0);
    const Cost& cost = costs_.cost(id);
    return cost.uses_sms ? cost.time : Seconds(0);
  }

  const Program& program_;
  const CostTable& costs_;
  IdVector<ComputationId, Seconds> times_;
};

/// While a handle's copies may run.
Seconds window_of(const Evaluator& evaluator, const KernelTimes& kernels, const Handle& handle) {
  if (handle.state == StateClass::kOptimizer)
    return kernels.behind_loops(evaluator.memory().schedule);
  // Layers that are not scanned, and parameters: whatever the step computes.
  if (handle.state || handle.residuals.empty()) return kernels.of_step();
  std::set<InstructionId> loops;
  for (const ResidualId id : handle.residuals) {
    const Residual& residual = evaluator.residuals().residuals[id];
    loops.insert(residual.forward_loop);
    loops.insert(residual.backward_loop);
  }
  Seconds total;
  for (const InstructionId loop : loops) total += kernels.of_loop(loop);
  return total;
}

MoveEffect effect_between(const PolicyCase& kept, const PolicyCase& offloaded,
                          const HostRates& rates) {
  MoveEffect effect;
  effect.device_to_host = offloaded.device_to_host - kept.device_to_host;
  effect.host_to_device = offloaded.host_to_device - kept.host_to_device;
  effect.saved_at_peak = kept.peak_device - offloaded.peak_device;
  effect.host = offloaded.host - kept.host;
  effect.added = offloaded.step - kept.step;
  effect.link =
      effect.device_to_host / rates.device_to_host + effect.host_to_device / rates.host_to_device;
  return effect;
}

}  // namespace

Result<std::vector<MoveEffect>> move_effects(const Evaluator& evaluator, const Policy& policy,
                                             const ScheduleSettings& order, std::size_t threads) {
  std::vector<std::size_t> movable;
  std::vector<Policy> policies;
  for (std::size_t k = 0; k < evaluator.handles().size(); ++k) {
    const Handle& handle = evaluator.handles()[k];
    if (!handle.fixed_because.empty() || !handle.device_only_because.empty()) continue;
    movable.push_back(k);
    for (const Choice choice : {Choice::kKeep, Choice::kOffload}) {
      policies.push_back(policy);
      policies.back()[k] = choice;
    }
  }
  CaseBook cases(evaluator, order, threads);
  if (const auto wrong = cases.simulate(policies)) return *wrong;
  const KernelTimes kernels(evaluator);
  const HostRates rates = host_rates(evaluator.profile(), evaluator.topology());
  std::vector<MoveEffect> effects;
  for (std::size_t m = 0; m < movable.size(); ++m) {
    MoveEffect effect =
        effect_between(cases.at(policies[2 * m]), cases.at(policies[2 * m + 1]), rates);
    effect.handle = movable[m];
    effect.window = window_of(evaluator, kernels, evaluator.handles()[movable[m]]);
    effects.push_back(effect);
  }
  std::ranges::stable_sort(effects, {}, &MoveEffect::load);
  return effects;
}

std::optional<HostUpdate> estimate_host_update(const Evaluator& evaluator) {
  const Bytes optimizer = bytes_of(evaluator.state(), StateClass::kOptimizer);
  const Bytes parameters = bytes_of(evaluator.state(), StateClass::kParameters);
  if (optimizer == Bytes(0) || parameters == Bytes(0)) return std::nullopt;
  const HostRates rates = host_rates(evaluator.profile(), evaluator.topology());
  HostUpdate update;
  update.gradients_out = update.parameters_in = parameters;
  // Moments and parameters are read and written, gradients read.
  update.host_traffic = optimizer * 2 + parameters * 3;
  update.link =
      update.gradients_out / rates.device_to_host + update.parameters_in / rates.host_to_device;
  update.memory_rate = rates.memory;
  update.memory = update.host_traffic / rates.memory;
  update.saved = optimizer - host_bytes_of(evaluator.state(), StateClass::kOptimizer);
  return update;
}

}  // namespace spillway
