#include "sim/planner/anchor.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "model/cost/program_flops.h"

namespace spillway {
namespace {

/// Computations that an async start wraps: their cost is the start's.
std::set<ComputationId> wrapped_computations(const Program& program) {
  std::set<ComputationId> wrapped;
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      if (program[id][i].opcode == Opcode::kAsyncStart)
        for (const ComputationId called : program[id].called(i)) wrapped.insert(called);
  return wrapped;
}

/// How much of what runs was measured.
void count_measured(const Program& program, Anchor& anchor) {
  const std::set<ComputationId> wrapped = wrapped_computations(program);
  Seconds measured, all;
  for (const Executed& executed : executed_computations(program)) {
    if (wrapped.contains(executed.id)) continue;
    for (const Cost& cost : anchor.costs.costs(executed.id)) {
      if (cost.kernel == KernelClass::kFree) continue;
      const bool is_measured = cost.bound == Bound::kMeasured;
      const Seconds time = cost.time * static_cast<double>(executed.runs);
      ++(is_measured ? anchor.measured : anchor.unmeasured);
      all += time;
      if (is_measured) measured += time;
    }
  }
  anchor.share_measured = all > Seconds(0) ? ratio(measured, all) : 0;
}

}  // namespace

Result<Anchor> make_anchor(const Program& program, const Schedule& schedule,
                           const HardwareProfile& profile, const Topology& topology,
                           std::optional<CopyStreams> copy_streams, MeasuredDurations run) {
  Anchor anchor;
  anchor.path = std::move(run.path);
  anchor.measured_step = run.step;
  anchor.notes = std::move(run.notes);
  const CostTable modelled = costs(program, profile, topology);
  MeasuredCosts found = with_measured_times(program, modelled, run.times);
  anchor.costs = std::move(found.table);
  anchor.unmatched = std::move(found.unmatched);
  count_measured(program, anchor);
  if (anchor.measured == 0)
    return error_in_file(
        anchor.path, fmt::format("names nothing that {} runs", spillway::quoted(program.name)),
        "its names are another program's, or the program was compiled again since");
  const MemoryAssignment memory = assign_memory(program, schedule);
  const auto step = [&](const CostTable& table) -> Result<Seconds> {
    const auto result =
        simulate(program, schedule, memory, profile, topology,
                 {.base_costs = &table, .copy_streams = copy_streams, .explains = false});
    if (!result.ok()) return result.error();
    return result->step;
  };
  const Result<Seconds> replayed = step(anchor.costs), by_model = step(modelled);
  if (!replayed.ok()) return replayed.error();
  if (!by_model.ok()) return by_model.error();
  anchor.replayed_step = *replayed;
  anchor.modelled_step = *by_model;
  return anchor;
}

}  // namespace spillway
