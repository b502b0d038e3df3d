#include "model/cost/measured_costs.h"

#include <algorithm>
#include <optional>
#include <set>

namespace spillway {
namespace {

class Override {
 public:
  Override(const Program& program, const CostTable& modelled, const MeasuredTimes& times)
      : program_(program), times_(times) {
    result_.table = modelled;
  }

  MeasuredCosts run() {
    for (const Executed& executed : executed_computations(program_)) override(executed.id);
    for (const auto& [name, time] : times_)
      if (!matched_.contains(name)) result_.unmatched.push_back(name);
    return std::move(result_);
  }

 private:
  void override(ComputationId id) {
    const auto modelled = result_.table.costs(id);
    std::vector<Cost> costs(modelled.begin(), modelled.end());
    bool any = false;
    for (const InstructionIndex i : program_[id].instructions()) {
      Cost& cost = costs[i.index];
      if (cost.kernel == KernelClass::kFree) continue;
      if (const auto time = time_of({id, i}, cost.gap)) {
        cost.time = *time;
        cost.bound = Bound::kMeasured;
        any = true;
      } else {
        result_.unmeasured.push_back({id, i});
      }
    }
    if (any) result_.table.replace_costs(id, std::move(costs));
  }

  std::optional<Seconds> time_of(InstructionId id, Seconds gap) {
    const Computation& computation = program_[id.computation];
    const Opcode opcode = computation[id.instruction].opcode;
    std::optional<Seconds> time = find(computation[id.instruction].name);
    const bool looks_inside = opcode == Opcode::kFusion || opcode == Opcode::kAsyncStart;
    if (!looks_inside || (opcode == Opcode::kFusion && !time)) return time;
    for (const ComputationId called : computation.called(id.instruction)) {
      for (const Instruction& inner : program_[called].parts().instructions) {
        const std::optional<Seconds> extra = find(inner.name);
        if (extra) time = time ? *time + *extra + gap : *extra;
      }
    }
    return time;
  }

  std::optional<Seconds> find(std::string_view name) {
    const auto found = times_.find(name);
    if (found == times_.end()) return std::nullopt;
    matched_.insert(found->first);
    return found->second;
  }

  const Program& program_;
  const MeasuredTimes& times_;
  std::set<std::string, std::less<>> matched_;
  MeasuredCosts result_;
};

/// `table` with `change(cost, measured, id)` made of each cost that was measured.
template <typename Change>
CostTable change_measured(const Program& program, CostTable table, const CostTable& measured,
                          const Change& change) {
  for (const Executed& executed : executed_computations(program)) {
    const auto now = table.costs(executed.id);
    std::vector<Cost> costs(now.begin(), now.end());
    for (std::size_t k = 0; k < costs.size(); ++k) {
      const Cost& of_run = measured.costs(executed.id)[k];
      if (of_run.bound == Bound::kMeasured) change(costs[k], of_run, executed.id, k);
    }
    table.replace_costs(executed.id, std::move(costs));
  }
  return table;
}

}  // namespace

MeasuredCosts with_measured_times(const Program& program, const CostTable& modelled,
                                  const MeasuredTimes& times) {
  return Override(program, modelled, times).run();
}

CostTable with_lesser_times(const Program& program, const CostTable& modelled,
                            const CostTable& measured) {
  return change_measured(program, modelled, measured,
                         [](Cost& cost, const Cost& of_run, ComputationId, std::size_t) {
                           cost.time = std::min(cost.time, of_run.time);
                         });
}

CostTable carried_over(const Program& program, const CostTable& measured, const CostTable& here,
                       const CostTable& there) {
  return change_measured(
      program, there, measured,
      [&here](Cost& cost, const Cost& of_run, ComputationId id, std::size_t k) {
        const Seconds modelled = here.costs(id)[k].time;
        cost.time = modelled > Seconds(0) ? of_run.time * ratio(cost.time, modelled) : of_run.time;
        cost.bound = Bound::kMeasured;
      });
}

}  // namespace spillway
