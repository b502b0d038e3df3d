#include "validation/program_step.h"

#include <algorithm>

#include "model/cost/roofline.h"
#include "model/plan/budget.h"
#include "model/spec/step_program.h"
#include "sim/model_step.h"

namespace spillway {
namespace {

bool touches(const Computation& computation, InstructionIndex i, std::int64_t width) {
  const auto has = [width](Shape shape) {
    return shape.is_array() && std::ranges::count(shape.dims(), width) > 0;
  };
  if (has(computation[i].shape)) return true;
  return std::ranges::any_of(computation.operands(i), [&](const Operand& operand) {
    return has(computation.shape_of(operand));
  });
}

/// The product, and in front of it the kernel that makes its operands narrow.
Cost narrow_cost(const Work& wide, std::string_view type, const HardwareProfile& profile) {
  const double narrow_bytes = type.starts_with("f4") ? 0.5 : 1, wide_bytes = 2;
  const auto operands = static_cast<double>(wide.traffic.hbm_read.value());
  const auto bytes = [](double count) { return Bytes(static_cast<std::int64_t>(count)); };
  Work product = wide;
  product.ops.matrix_type = type;
  product.traffic.hbm_read = bytes(operands * narrow_bytes / wide_bytes);
  Work narrowing;
  narrowing.kernel = KernelClass::kElementwise;
  narrowing.traffic.hbm_read = wide.traffic.hbm_read;
  narrowing.traffic.hbm_written = product.traffic.hbm_read;
  const Cost before = roofline(narrowing, profile);
  Cost cost = roofline(product, profile);
  cost.time += before.time + before.gap;
  return cost;
}

}  // namespace

CostTable with_narrow_products(const Program& program, const CostTable& costs,
                               const HardwareProfile& profile, std::string_view type,
                               std::int64_t width) {
  CostTable table = costs;
  for (const ComputationId id : IdRange<ComputationId>(program.computations.size())) {
    if (id == program.entry || !costs.contains(id)) continue;
    const Computation& computation = program[id];
    const auto before = costs.costs(id);
    std::vector<Cost> changed(before.begin(), before.end());
    for (const InstructionIndex i : computation.instructions()) {
      const Work& work = costs.work({id, i});
      if (work.kernel != KernelClass::kGemm) continue;
      if (width > 0 && !touches(computation, i, width)) continue;
      changed[i.index] = narrow_cost(work, type, profile);
    }
    table.replace_costs(id, std::move(changed));
  }
  return table;
}

Result<SimResult> simulate_run(const RunSettings& run) {
  const auto step = build_step_program(run.spec);
  if (!step.ok()) return step.error();
  const Result<Budget> budget =
      make_budget(run.profile, run.topology, {.fraction = run.memory_fraction});
  if (!budget.ok()) return budget.error();
  const auto order_of = [&](const Evaluator& evaluator, bool pipelines) {
    ScheduleSettings order = evaluator.default_order();
    order.scheduler.hides_latencies = run.hides_latencies;
    if (run.has_profile) {
      order.scheduler.rest = order.scheduler.costs;
      order.scheduler.costs = BelievedCosts::kProfile;
    }
    order.pipelines_host_copies = pipelines;
    return order;
  };
  const Evaluator saved(step->program, text_schedule(step->program).value(), run.profile,
                        run.topology, step->names, *budget);
  Result<Program> program =
      saved.rewrite(configured_policy(run.spec, saved.handles()), order_of(saved, false));
  if (!program.ok()) return program.error();
  if (run.pipelines_copies) {
    const Evaluator configured(*program, text_schedule(*program).value(), run.profile, run.topology,
                               step->names, *budget);
    Result<Program> pipelined =
        configured.rewrite(compiled_policy(configured.handles()), order_of(configured, true));
    if (!pipelined.ok()) return pipelined.error();
    program = std::move(pipelined);
  }
  const Schedule schedule = text_schedule(*program).value();
  CostTable table = costs(*program, run.profile, run.topology);
  if (run.narrow != NarrowProducts::kNone) {
    const std::int64_t width =
        run.narrow == NarrowProducts::kMlp
            ? run.spec.model.groups.back().mlp_width / run.spec.mesh.tensor_shares()
            : 0;
    table = with_narrow_products(*program, table, run.profile, run.narrow_type, width);
  }
  return simulate(*program, schedule, assign_memory(*program, schedule), run.profile, run.topology,
                  {.base_costs = &table});
}

}  // namespace spillway
