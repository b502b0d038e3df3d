#include "sim/planner/simulate_saving.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "model/base/parallel.h"

namespace spillway {
namespace {

/// Of a name's rows so many are simulated: the first spares most for a byte.
constexpr std::size_t kRowsOfName = 2;
/// Closer steps are as good.
constexpr double kFaster = 0.0005;

/// As good as nothing, which the engine still runs.
constexpr Seconds kInstant{1e-12};

/// Costs of a program in which some instructions take no time.
CostTable without(const Program& program, CostTable table,
                  const std::set<std::string_view>& names) {
  for (const Executed& executed : executed_computations(program)) {
    const auto now = table.costs(executed.id);
    std::vector<Cost> costs(now.begin(), now.end());
    bool any = false;
    for (const InstructionIndex i : program[executed.id].instructions()) {
      Cost& cost = costs[i.index];
      if (cost.kernel == KernelClass::kFree || !names.contains(program[executed.id][i].name))
        continue;
      const KernelClass kernel = cost.kernel;
      cost = Cost{.time = kInstant, .bound = Bound::kMeasured, .kernel = kernel};
      cost.uses_sms = kernel != KernelClass::kCollective;
      any = true;
    }
    if (any) table.replace_costs(executed.id, std::move(costs));
  }
  return table;
}

}  // namespace

std::optional<Error> simulate_saving(const Evaluator& evaluator, const PolicyCase& planned,
                                     const ScheduleSettings& order, std::size_t most,
                                     std::vector<WorthSaving>& rows) {
  if (rows.empty() || most == 0) return std::nullopt;
  const Result<Program> step = evaluator.rewrite_planned(planned.policy, order);
  if (!step.ok()) return step.error();
  const Schedule schedule = text_schedule(*step).value();
  const MemoryAssignment memory = assign_memory(*step, schedule);
  const CostTable table =
      costs(*step, evaluator.profile(), evaluator.topology(), evaluator.cost_table());
  for (std::size_t k = 0; k < rows.size() && k < most; ++k) {
    WorthSaving& row = rows[k];
    const std::set<std::string_view> spared(row.spared_instructions.begin(),
                                            row.spared_instructions.end());
    const CostTable costs = without(*step, table, spared);
    const Result<SimResult> run = simulate(
        *step, schedule, memory, evaluator.profile(), evaluator.topology(),
        {.base_costs = &costs, .copy_streams = evaluator.copy_streams(), .explains = false});
    if (!run.ok()) return run.error();
    row.simulated = {planned.step, run->step + row.saving, planned.peak_device + row.bytes};
  }
  return std::nullopt;
}

Result<std::vector<WorthSaving>> find_saved_instead(const Evaluator& evaluator,
                                                    const PlanResult& plan, std::size_t threads) {
  std::vector<std::size_t> saved;
  for (std::size_t k = 0; k < plan.handles.size(); ++k) {
    const auto choices = choices_of(plan.handles[k]);
    const bool may_go = std::ranges::find(choices, Choice::kRecompute) != choices.end();
    if (may_go && plan.best.policy[k] != Choice::kRecompute) saved.push_back(k);
  }
  std::vector<std::optional<Error>> errors(saved.size());
  std::vector<std::optional<WorthSaving>> found(saved.size());
  for_each_piece(saved.size(), threads, [&](std::size_t n) {
    const Handle& handle = plan.handles[saved[n]];
    Policy policy = plan.best.policy;
    policy[saved[n]] = Choice::kRecompute;
    std::vector<WorthSaving> rows = find_unnamed_values(evaluator, policy);
    std::erase_if(rows, [&handle](const WorthSaving& row) {  // saved after all
      return row.values.empty() ||
             std::ranges::find(row.with_names, handle.name) != row.with_names.end();
    });
    if (rows.empty()) return;
    const Result<PolicyCase> without_it = evaluator.evaluate_planned(policy, plan.order);
    if (!without_it.ok()) {
      errors[n] = without_it.error();
      return;
    }
    errors[n] = simulate_saving(evaluator, *without_it, plan.order, kRowsOfName, rows);
    if (errors[n]) return;
    for (WorthSaving& row : rows) {
      if (!row.simulated || row.simulated->step >= plan.best.step * (1 - kFaster)) continue;
      const Budget& budget = evaluator.budget();
      if (row.simulated->peak_device > budget.room() || without_it->host > budget.host_room())
        continue;
      if (found[n] && found[n]->simulated->step <= row.simulated->step) continue;
      row.simulated->step_before = plan.best.step;
      row.instead_of = handle.name;
      found[n] = row;
    }
  });
  std::vector<WorthSaving> result;
  for (std::size_t n = 0; n < saved.size(); ++n) {
    if (errors[n]) return *errors[n];
    if (found[n]) result.push_back(*found[n]);
  }
  std::ranges::stable_sort(result, {}, [](const WorthSaving& row) { return row.simulated->step; });
  return result;
}

}  // namespace spillway
