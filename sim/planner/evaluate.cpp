#include "sim/planner/evaluate.h"

#include <algorithm>
#include <limits>

#include "model/cost/measured_costs.h"
#include "model/cost/run_time.h"
#include "model/diagnostics/slice_offsets.h"
#include "model/flags/known_flags.h"
#include "model/plan/compiler_limit.h"
#include "model/run/write_pgle.h"
#include "sim/rewrite/in_order.h"
#include "sim/rewrite/open_collectives.h"
#include "sim/rewrite/pipeline_host_copies.h"

namespace spillway {
namespace {

/// Whether a rewrite left the program as it was.
bool is_as_compiled(const Program& planned, const Program& compiled) {
  if (planned.computations.size() != compiled.computations.size()) return false;
  for (const ComputationId id : ids(planned.computations))
    if (planned.computations[id] != compiled.computations[id]) return false;
  return true;
}

std::vector<std::string> reasons_to_stay(const Program& program, const Lifetimes& memory,
                                         const ResidualTable& table) {
  std::vector<std::string> reasons;
  for (const Residual& residual : table.residuals)
    reasons.push_back(why_not_movable(program, memory, residual));
  return reasons;
}

/// Whether this build of XLA fetches the wrong layers of an offloaded stack: then it would of the
/// others too.
bool reloads_wrong_layers(const Program& program, const Lifetimes& memory,
                          const ResidualTable& table) {
  return std::ranges::any_of(table.residuals, [&](const Residual& residual) {
    return find_wrong_slice(program, memory.schedule, residual).has_value();
  });
}

/// Made anew for each policy, these would take most of the time; kept for more, most of the memory.
std::size_t most_recomputed_bases(const Program& program) {
  constexpr std::size_t kInstructions = 2'000'000, kFewest = 16;
  return std::max(kFewest, kInstructions / std::max<std::size_t>(1, program.instruction_count()));
}

}  // namespace

Evaluator::Evaluator(const Program& program, const Schedule& schedule,
                     const HardwareProfile& profile, const Topology& topology,
                     const NameList& names, const Budget& budget, const EvaluatorOptions& options)
    : program_(program),
      profile_(profile),
      topology_(topology),
      budget_(budget),
      copy_streams_(options.copy_streams),
      memory_(assign_memory(program, schedule)),
      residuals_(find_residuals(program, memory_, names)),
      state_(find_training_state(program)),
      state_bases_(program, memory_, state_, profile),
      unrolled_(residuals_.residuals.empty() ? find_unrolled_residuals(program, memory_, names)
                                             : UnrolledTable()),
      handles_(residuals_.residuals.empty()
                   ? make_handles(unrolled_, !names.names.empty())
                   : make_handles(residuals_, !names.names.empty(),
                                  reasons_to_stay(program, memory_, residuals_))),
      costs_(options.base != nullptr ? costs(program, profile, topology, *options.base)
                                     : costs(program, profile, topology)),
      recompute_(program, memory_, residuals_),
      recomputed_bases_(most_recomputed_bases(program)),
      unrolled_rewrite_(program, unrolled_) {
  if (options.base != nullptr)
    least_costs_ = with_lesser_times(program, costs(program, profile, topology), costs_);
  if (!unrolled_.residuals.empty()) residuals_.unmatched_names = unrolled_.unmatched_names;
  for (Handle& handle : handles_) {
    std::string first;
    bool none = true;
    const auto add = [&](const std::string& why) {
      none &= !why.empty();
      if (first.empty()) first = why;
    };
    for (const ResidualId id : handle.residuals) add(recompute_.why_not(id));
    for (const UnrolledId id : handle.unrolled) add(unrolled_rewrite_.why_not_recomputed(id));
    if (none) handle.saved_because = first;
  }
  if (reloads_wrong_layers(program, memory_, residuals_))
    for (Handle& handle : handles_)
      if (handle.fixed_because.empty())
        handle.device_only_because =
            "this build of XLA reloads the wrong layers of offloaded stacks (reads-wrong-slice)";
  for (Handle& handle : make_state_handles(program, memory_, state_)) {
    if (!unrolled_.residuals.empty() && handle.fixed_because.empty())
      handle.fixed_because =
          "the layers are not scanned, and what XLA makes of state on the host there is not known";
    handles_.push_back(std::move(handle));
  }
  for (const LayerGroup& group : options.split) split_layers(handles_, unrolled_, group);
}

ScheduleSettings Evaluator::default_order() const {
  const FlagContext context{newest_probed(), gpu_model(profile_.device),
                            has_only_common_parts(program_)};
  return schedule_settings({}, context)
      .value_or(ScheduleSettings{.scheduler = {.hides_latencies = true}});
}

Program Evaluator::rewrite(const Policy& policy) const {
  Program planned = change(policy);
  if (unrolled_.residuals.empty() || is_as_compiled(planned, program_)) return planned;
  const Schedule given = text_schedule(planned).value();
  const MemoryTotals totals =
      sum_totals(assign_outside_heaps(planned, find_lifetimes(planned, given)));
  const Reordered ordered =
      reorder(planned, given, profile_, order_options(default_order(), totals));
  return in_order(ordered.program, ordered.order.schedule);
}

Program Evaluator::change_unrolled(const std::vector<Handle>& handles, const Policy& policy) const {
  std::vector<UnrolledChange> changes;
  for (std::size_t k = 0; k < handles.size(); ++k)
    for (const UnrolledId id : handles[k].unrolled)
      for (const std::uint32_t layer : layers_of(handles[k], unrolled_))
        changes.push_back({id, layer, policy[k]});
  return policy == compiled_policy(handles) ? program_ : unrolled_rewrite_.run(changes);
}

/// The program with some residuals recomputed and the others where they are wanted.
Program Evaluator::rewrite_residuals(const Program& program, const Lifetimes& memory,
                                     const ResidualTable& residuals,
                                     const RecomputeRewrite& recompute,
                                     std::vector<ResidualId> recomputed,
                                     const std::vector<PlacementChange>& changes) const {
  std::erase_if(recomputed, [&](ResidualId id) { return !recompute.why_not(id).empty(); });
  if (recomputed.empty()) return place_residuals(program, memory, residuals, changes);
  std::ranges::sort(recomputed);
  const auto base = recomputed_bases_.with(program, residuals, recompute, recomputed);
  std::vector<PlacementChange> there;
  for (const PlacementChange& change : changes) {
    check(base->now[change.residual].has_value(),
          "a residual that stays saved is not found after the others are recomputed");
    there.push_back({*base->now[change.residual], change.placement});
  }
  return place_residuals(base->program, base->memory, base->residuals, there);
}

Program Evaluator::change(const Policy& policy) const {
  if (!unrolled_.residuals.empty()) return change_unrolled(handles_, policy);
  std::vector<ResidualId> recomputed;
  std::vector<PlacementChange> changes;
  std::vector<StateChange> state;
  for (std::size_t k = 0; k < handles_.size(); ++k) {
    const Handle& handle = handles_[k];
    const bool may_move = handle.fixed_because.empty();
    const Placement place =
        policy[k] == Choice::kKeep ? Placement::kDevice : Placement::kPinnedHost;
    if (handle.state && may_move && policy[k] != handle.as_compiled &&
        policy[k] != Choice::kRecompute)
      state.push_back({*handle.state, place});
    for (const ResidualId id : handle.residuals) {
      if (policy[k] == Choice::kRecompute)
        recomputed.push_back(id);
      else if (may_move)
        changes.push_back({id, place});
    }
  }
  if (state.empty())
    return rewrite_residuals(program_, memory_, residuals_, recompute_, recomputed, changes);
  const StateBase& base = state_bases_.with(state);
  check(base.residuals.residuals.size() == residuals_.residuals.size(),
        "moving state has changed what crosses between the loops");
  return rewrite_residuals(base.program, base.memory, base.residuals, *base.recompute, recomputed,
                           changes);
}

Result<SimResult> Evaluator::simulate_program(const Program& program) const {
  const Schedule schedule = text_schedule(program).value();
  return simulate(program, schedule, assign_memory(program, schedule), profile_, topology_,
                  {.base_costs = &costs_, .copy_streams = copy_streams_});
}

PolicyCase Evaluator::case_of(const Policy& policy, const SimResult& sim) const {
  PolicyCase result;
  result.policy = policy;
  result.step = sim.step;
  result.peak_device = sim.memory.total_device;
  result.host = host_bytes(sim.memory);
  result.device_to_host = sim.traffic.device_to_host;
  result.host_to_device = sim.traffic.host_to_device;
  result.exposed_copies = sim.exposed_device_to_host + sim.exposed_host_to_device;
  result.dot_flops = sim.flops.dot_per_step.value();
  result.largest_block = sim.memory.largest_allocation;
  result.fit = check_fit(sim.memory, budget_);
  result.missed = missed(result.fit, budget_);
  return result;
}

Result<PolicyCase> Evaluator::evaluate(const Policy& policy) const {
  const Program planned = rewrite(policy);
  return run(policy, planned, text_schedule(planned).value());
}

XlaOrderOptions Evaluator::order_options(const ScheduleSettings& settings,
                                         const MemoryTotals& totals) const {
  XlaOrderOptions options;
  options.scheduler = settings.scheduler;
  options.limits.collectives = static_cast<std::int32_t>(settings.collectives);
  options.limits.async_computes = static_cast<std::int32_t>(settings.async_computes);
  options.limits.starts_collectives_early = settings.starts_collectives_early;
  // A live run compiles for the pool it has; what is only assumed to be run, ahead of time.
  const Bytes base = budget_.pool_is_stated
                         ? budget_.pool
                         : ahead_of_time_base(profile_.device.hbm_capacity.value);
  options.limits.memory =
      settings.memory_slop_percent < 0  // XLA takes it for a huge number
          ? Bytes(std::numeric_limits<std::int64_t>::max())
          : scheduler_limit(totals, base, static_cast<int>(settings.memory_slop_percent));
  options.fencing_threshold = settings.fencing_threshold_bytes;
  options.fencing_slack = static_cast<std::int32_t>(settings.fencing_slack_windows);
  return options;
}

ProfiledInstructions Evaluator::modelled_profile(const Program& planned) const {
  const Program opened = open_collectives(planned);
  const CostTable table = costs(opened, profile_, topology_, costs_);
  return as_read(make_pgle_profile(opened, table, profile_, topology_));
}

Result<Evaluator::Ordered> Evaluator::order(Program planned,
                                            const ScheduleSettings& settings) const {
  const SchedulerChoice& scheduler = settings.scheduler;
  if (settings.async_computes < 1 || settings.collectives < 1)
    return usage_error("XLA cannot order with a limit below 1");
  bool pipelines = false;  // there is a copy to pipeline
  if (settings.pipelines_host_copies) {
    if (!is_as_compiled(planned, program_))
      return usage_error("pipelining is simulated for copies that XLA made only");
    Result<Program> pipelined = pipeline_host_copies(planned);
    if (!pipelined.ok()) return pipelined.error();
    pipelines = !is_as_compiled(*pipelined, planned);
    planned = std::move(pipelined).value();
  }
  Schedule given = text_schedule(planned).value();
  // What XLA pipelines it orders with copies of the carry that are gone afterwards, and without
  // them the order comes out worse than the rewrite's own: docs/schedule.md.
  if (pipelines && scheduler.hides_latencies) return Ordered{std::move(planned), std::move(given)};
  const MemoryTotals totals =
      sum_totals(assign_outside_heaps(planned, find_lifetimes(planned, given)));
  XlaOrderOptions options = order_options(settings, totals);
  if (scheduler.goes_by_profile()) options.estimator.measured = modelled_profile(planned);
  Reordered ordered = reorder(planned, given, profile_, options);
  return Ordered{std::move(ordered.program), std::move(ordered.order.schedule)};
}

Result<Program> Evaluator::rewrite(const Policy& policy, const ScheduleSettings& settings) const {
  const Result<Ordered> ordered = order(change(policy), settings);
  if (!ordered.ok()) return ordered.error();
  return in_order(ordered->program, ordered->schedule);
}

Result<PolicyCase> Evaluator::evaluate(const Policy& policy,
                                       const ScheduleSettings& settings) const {
  const Result<Ordered> ordered = order(change(policy), settings);
  if (!ordered.ok()) return ordered.error();
  return run(policy, ordered->program, ordered->schedule);
}

Result<PolicyCase> Evaluator::evaluate_planned(const Policy& policy,
                                               const ScheduleSettings& order) const {
  return policy == compiled_policy(handles_) ? evaluate(policy) : evaluate(policy, order);
}

Result<PolicyCase> Evaluator::evaluate_split(const std::vector<Handle>& handles,
                                             const Policy& policy,
                                             const ScheduleSettings& settings) const {
  check(!unrolled_.residuals.empty(), "handles of layers that are scanned were split");
  if (policy == compiled_policy(handles))
    return run(policy, program_, text_schedule(program_).value());
  const Result<Ordered> ordered = order(change_unrolled(handles, policy), settings);
  if (!ordered.ok()) return ordered.error();
  return run(policy, ordered->program, ordered->schedule);
}

Result<Program> Evaluator::rewrite_planned(const Policy& policy,
                                           const ScheduleSettings& order) const {
  if (policy == compiled_policy(handles_)) return program_;
  return rewrite(policy, order);
}

Result<PolicyCase> Evaluator::run(const Policy& policy, const Program& program,
                                  const Schedule& schedule) const {
  const Result<SimResult> simulated =
      simulate(program, schedule, assign_memory(program, schedule), profile_, topology_,
               {.base_costs = &costs_, .copy_streams = copy_streams_, .explains = false});
  if (!simulated.ok()) return simulated.error();
  return case_of(policy, *simulated);
}

}  // namespace spillway
