#include "sim/report/step_figures.h"

#include <algorithm>
#include <set>

#include "model/compare/compare.h"
#include "model/residuals/step_parts.h"

namespace spillway {
namespace {

/// Alike items together, the largest of them.
std::vector<Item> largest(std::vector<Item> items) {
  std::vector<Item> all = find_excess(std::move(items), {}).first;
  if (all.size() > StepFigures::kListed) all.resize(StepFigures::kListed);
  return all;
}

/// Where loops over layers begin in the schedule, and whether a position is inside of one.
class Loops {
 public:
  Loops(const FlatSchedule& schedule, const std::set<InstructionId>& whiles)
      : schedule_(schedule), whiles_(whiles) {}

  bool surround(InstructionId id) const {
    for (auto caller = schedule_.caller[id.computation]; caller;
         caller = schedule_.caller[caller->computation])
      if (whiles_.contains(*caller)) return true;
    return false;
  }
  /// The first of them is still to come.
  bool are_ahead(LogicalTime at) const {
    return std::ranges::all_of(whiles_, [&](InstructionId loop) {
      return at < schedule_.position[loop.computation][loop.instruction.index];
    });
  }

 private:
  const FlatSchedule& schedule_;
  const std::set<InstructionId>& whiles_;
};

std::string_view name_of(StepPart part) {
  switch (part) {
    case StepPart::kForward:
      return "forward";
    case StepPart::kBackward:
      return "backward";
    case StepPart::kUpdate:
      return "update";
  }
  return "";
}

/// The part of the step that an instruction belongs to: by the loops over layers where there are
/// any, else by what JAX says of it.
std::string phase_of(const Program& program, const FlatSchedule& schedule,
                     const ResidualTable& residuals, LogicalTime at) {
  const InstructionId id = schedule.order[static_cast<std::size_t>(at.value())];
  std::set<InstructionId> forward, backward;
  for (const Residual& residual : residuals.residuals) {
    forward.insert(residual.forward_loop);
    backward.insert(residual.backward_loop);
  }
  if (forward.empty()) {
    InstructionId outer = id;
    while (const auto caller = schedule.caller[outer.computation]) outer = *caller;
    if (outer.computation != program.entry) return "";
    return std::string(name_of(StepParts(program).part(outer.instruction)));
  }
  if (Loops(schedule, forward).surround(id)) return "forward loop";
  if (Loops(schedule, backward).surround(id)) return "backward loop";
  if (Loops(schedule, forward).are_ahead(at)) return "before the forward loop";
  if (Loops(schedule, backward).are_ahead(at)) return "between the loops";
  return "after the backward loop";
}

StepTimes times_of(const SimResult& run) {
  return {.step = run.step,
          .kernels = run.compute_busy,
          .exposed_offloads = run.exposed_device_to_host,
          .exposed_reloads = run.exposed_host_to_device,
          .exposed_collectives = run.exposed_collective,
          .exposed_slices = run.exposed_slices,
          .idle = run.idle};
}

void add_residuals(const ResidualTable& scanned, const UnrolledTable& unrolled,
                   const std::vector<Handle>& handles, const Policy& policy,
                   std::vector<PlannedResidual>& out) {
  // What no handle has stays.
  std::vector<std::optional<Choice>> of_scanned(scanned.residuals.size());
  std::vector<std::optional<Choice>> of_unrolled(unrolled.residuals.size());
  for (std::size_t k = 0; k < handles.size(); ++k) {
    for (const ResidualId id : handles[k].residuals) of_scanned[id.index] = policy[k];
    for (const UnrolledId id : handles[k].unrolled) of_unrolled[id.index] = policy[k];
  }
  const auto as_compiled = [](Placement placement) {
    return placement == Placement::kDevice ? Choice::kKeep : Choice::kOffload;
  };
  for (const ResidualId id : ids(scanned.residuals)) {
    const Residual& r = scanned.residuals[id];
    out.push_back({r.names, to_string(r.slice), r.layers, r.total_bytes,
                   of_scanned[id.index].value_or(as_compiled(r.placement))});
  }
  for (const UnrolledId id : ids(unrolled.residuals)) {
    const UnrolledResidual& r = unrolled.residuals[id];
    out.push_back({r.names, to_string(r.shape), static_cast<std::int64_t>(r.layers.size()),
                   r.total_bytes(), of_unrolled[id.index].value_or(as_compiled(r.placement))});
  }
}

std::vector<PlannedSetting> to_settings(const std::vector<Setting>& settings) {
  std::vector<PlannedSetting> list;
  for (const Setting& setting : settings) list.emplace_back(setting.name, setting.value);
  return list;
}

}  // namespace

StepFigures make_step_figures(const Program& program, const MemoryAssignment& memory,
                              const SimResult& run, const ResidualTable& residuals) {
  const MemoryReport report = make_memory_report(program, memory);
  Inventory inventory = take_inventory(program, memory, report);
  StepFigures figures;
  figures.times = times_of(run);
  figures.memory = report.totals;
  figures.offloaded = report.traffic.device_to_host;
  figures.reloaded = report.traffic.host_to_device;
  figures.dot_flops = run.flops.dot_per_step.value();
  figures.live_peak = report.live_peak;
  figures.peak_instruction = report.live_peak_instruction;
  figures.peak_phase = phase_of(program, memory.schedule, residuals, report.live_peak_at);
  figures.remat_clones = static_cast<std::int64_t>(inventory.clones.size());
  figures.buffers = largest(std::move(inventory.buffers));
  figures.host_arrays = largest(std::move(inventory.host_arrays));
  figures.offloads = largest(std::move(inventory.offloads));
  figures.reloads = largest(std::move(inventory.reloads));
  figures.clones = largest(std::move(inventory.clones));
  return figures;
}

std::vector<PlannedState> list_state(const Program& program) {
  const TrainingState state = find_training_state(program);
  std::vector<PlannedState> list;
  for (const StateClass kind : kStateClasses)
    if (bytes_of(state, kind) > Bytes(0))
      list.push_back({kind, bytes_of(state, kind), host_bytes_of(state, kind)});
  return list;
}

PlanFile make_plan_file(const PlanFileContext& context, const std::vector<Handle>& handles,
                        const Policy& policy, const FlagSettings& flags, bool fits,
                        const StepOfPlan& planned, const Advice& advice) {
  const MemoryAssignment compiled = assign_memory(context.compiled, context.schedule);
  const ResidualTable scanned = find_residuals(context.compiled, compiled, context.names);
  const UnrolledTable unrolled =
      scanned.residuals.empty() ? find_unrolled_residuals(context.compiled, compiled, context.names)
                                : UnrolledTable();
  const MemoryAssignment memory = assign_memory(planned.program, planned.schedule);
  PlanFile file;
  file.program = identify(context.compiled, sum_totals(compiled));
  file.hardware = context.hardware;
  file.topology = context.topology;
  file.jaxlib = context.jaxlib;
  file.pageable_copies = context.pageable_copies;
  file.anchored_on = context.anchored_on;
  const Budget& budget = context.budget;
  file.budget = {budget.hbm, budget.pool, budget.reserve, budget.host_room(), {}, budget.block};
  if (budget.margin > 0) file.budget.usable = budget.room();
  file.fits = fits;
  for (std::size_t k = 0; k < handles.size(); ++k) {
    file.policy.emplace_back(handles[k].name, policy[k]);
    for (const std::string& alias : handles[k].aliases) file.policy.emplace_back(alias, policy[k]);
  }
  add_residuals(scanned, unrolled, handles, policy, file.residuals);
  file.state = list_state(planned.program);
  file.predicted = make_step_figures(planned.program, memory, planned.run,
                                     find_residuals(planned.program, memory, {}));
  file.flags.assign(flags.begin(), flags.end());
  file.recommended_flags = to_settings(advice.flags);
  file.environment = to_settings(advice.environment);
  file.maxtext = to_settings(advice.maxtext);
  file.jax_policy = advice.jax_policy;
  file.jax_state = advice.jax_state;
  return file;
}

}  // namespace spillway
