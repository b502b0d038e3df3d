#include "sim/planner/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/base/parallel.h"

namespace spillway {
namespace {

/// What runs at most this much faster or slower than before cannot overtake from further behind.
constexpr double kReach = 1.25;

HardwareProfile turned(const HardwareProfile& profile, Knob knob, double factor) {
  switch (knob) {
    case Knob::kLink:
      return with_link(profile, factor);
    case Knob::kCompute:
      return with_compute(profile, factor);
    case Knob::kHbmBandwidth:
      return with_hbm(profile, factor);
    case Knob::kHbmBudget:
      break;
  }
  return profile;
}

struct Winner {
  std::size_t index = 0;  ///< 0: the plan's
  Seconds step, step_of_plan;
};

class Turning {
 public:
  Turning(const Evaluator& evaluator, const PlanResult& plan, std::size_t threads)
      : evaluator_(evaluator), plan_(plan), threads_(threads), shown_(shown_policies(plan)) {}

  Result<Sensitivity> run() {
    for (const PolicyCase& outcome : shown_) {
      if (outcome.fit.fits != plan_.fits || outcome.step > plan_.best.step * kReach) continue;
      Result<PlannedStep> step = make_planned_step(evaluator_, plan_, outcome);
      if (!step.ok()) return step.error();
      steps_.push_back(std::move(step).value());
    }
    Sensitivity result;
    result.policies_asked = shown_.size();
    for (const Knob knob : kKnobs) {
      if (knob == Knob::kHbmBudget) {
        turn_budget(result);
        continue;
      }
      if (auto wrong = turn(knob, result)) return *wrong;
    }
    return result;
  }

 private:
  Result<Winner> winner_at(Knob knob, double factor) const {
    const HardwareProfile profile = turned(evaluator_.profile(), knob, factor);
    const OtherMachine machine(evaluator_, profile);
    std::vector<std::optional<Result<SimResult>>> runs(steps_.size());
    for_each_piece(steps_.size(), threads_,
                   [&](std::size_t k) { runs[k] = machine.run(steps_[k]); });
    for (const auto& run : runs)
      if (!run->ok()) return run->error();
    Winner winner{0, (**runs[0]).step, (**runs[0]).step};
    for (std::size_t k = 1; k < runs.size(); ++k)
      if ((**runs[k]).step < std::min(winner.step, winner.step_of_plan * (1 - kAsGood)))
        winner.index = k, winner.step = (**runs[k]).step;
    return winner;
  }

  std::optional<Error> turn(Knob knob, Sensitivity& result) const {
    std::optional<double> below, above;  // the factors nearest to 1 at which another wins
    for (const double factor : kFactors) {
      const Result<Winner> winner = winner_at(knob, factor);
      if (!winner.ok()) return winner.error();
      result.cases.push_back({knob, factor, steps_[winner->index].outcome.policy, winner->step,
                              winner->step_of_plan, true});
      if (winner->index == 0) continue;
      if (factor < 1) below = factor;
      if (factor > 1 && !above) above = factor;
    }
    for (const auto& factor : {below, above})
      if (factor)
        if (auto wrong = add_switch(knob, *factor, result)) return wrong;
    return std::nullopt;
  }

  /// Between `away`, where another policy wins, and the factor nearer to 1 at which none does.
  std::optional<Error> add_switch(Knob knob, double away, Sensitivity& result) const {
    double near = std::abs(away - 1) < 0.15 ? 1 : away < 1 ? 0.9 : 1.1;
    std::size_t to = 0;
    while (to == 0 || std::abs(away - near) > kSwitchWidth) {
      const double middle = to == 0 ? away : (away + near) / 2;
      const Result<Winner> winner = winner_at(knob, middle);
      if (!winner.ok()) return winner.error();
      if (winner->index != 0)
        away = middle, to = winner->index;
      else
        near = middle;
    }
    result.switches.push_back({knob, away, steps_[to].outcome.policy});
    return std::nullopt;
  }

  /// Nothing to simulate: policies need the same HBM, and the budget says which of them fit.
  void turn_budget(Sensitivity& result) const {
    const double pool = static_cast<double>(evaluator_.budget().room().value());
    const auto need = [&](const PolicyCase& outcome) {
      return static_cast<double>(outcome.peak_device.value()) / pool;
    };
    const auto best_at = [&](double factor) -> const PolicyCase* {
      const PolicyCase* best = nullptr;
      for (const PolicyCase& outcome : shown_)
        if (need(outcome) <= factor && outcome.missed == outcome.fit.over_hbm &&
            (best == nullptr || outcome.step < best->step * (best == &shown_[0] ? 1 - kAsGood : 1)))
          best = &outcome;
      return best;
    };
    const PolicyCase* const plan = &shown_[0];
    for (const double factor : kFactors) {
      const PolicyCase* const best = best_at(factor);
      result.cases.push_back({Knob::kHbmBudget, factor, best ? best->policy : Policy(),
                              best ? best->step : Seconds(0), plan->step, need(*plan) <= factor});
    }
    if (!plan->fit.fits) return;
    // Less: where the plan does not fit any more. More: where the first faster one fits.
    std::set<double> needs = {need(*plan)};
    for (const PolicyCase& outcome : shown_) needs.insert(need(outcome));
    if (need(*plan) > kFactors[0]) {
      const double just_below = std::nextafter(need(*plan), 0.0);
      const PolicyCase* const next = best_at(just_below);
      result.switches.push_back({Knob::kHbmBudget, need(*plan), next ? next->policy : Policy()});
    }
    for (const double factor : needs)
      if (factor > 1 && factor <= kFactors[3])
        if (const PolicyCase* const best = best_at(factor); best != plan) {
          result.switches.push_back({Knob::kHbmBudget, factor, best->policy});
          break;
        }
  }

  const Evaluator& evaluator_;
  const PlanResult& plan_;
  std::size_t threads_;
  std::vector<PolicyCase> shown_;
  std::vector<PlannedStep> steps_;  ///< the plan's first
};

}  // namespace

std::string_view name_of(Knob knob) {
  switch (knob) {
    case Knob::kLink:
      return "link";
    case Knob::kCompute:
      return "compute";
    case Knob::kHbmBandwidth:
      return "hbm bandwidth";
    case Knob::kHbmBudget:
      return "hbm budget";
  }
  return "";
}

Result<Sensitivity> find_sensitivity(const Evaluator& evaluator, const PlanResult& plan,
                                     std::size_t threads) {
  return Turning(evaluator, plan, threads).run();
}

}  // namespace spillway
