#include "sim/planner/requirements.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace spillway {
namespace {

/// The smallest factor in [least, most] for which it holds, to within kRateWidth, where it holds
/// for all above; empty where it does not hold for `most`. An error of `holds` is handed on.
Result<std::optional<double>> smallest_factor(double least, double most,
                                              const std::function<Result<bool>(double)>& holds) {
  const Result<bool> at_most = holds(most);
  if (!at_most.ok()) return at_most.error();
  if (!*at_most) return std::optional<double>();
  const Result<bool> at_least = holds(least);
  if (!at_least.ok()) return at_least.error();
  if (*at_least) return std::optional(least);
  while (most / least > 1 + kRateWidth) {
    const double middle = std::sqrt(least * most);
    const Result<bool> there = holds(middle);
    if (!there.ok()) return there.error();
    (*there ? most : least) = middle;
  }
  return std::optional(most);
}

class Asking {
 public:
  Asking(const Evaluator& evaluator, const PlanResult& plan)
      : evaluator_(evaluator), plan_(plan), link_(evaluator.profile().link) {}

  Result<Requirements> run() {
    Requirements need;
    const PolicyCase& best = plan_.best;
    need.hbm = best.peak_device;
    need.host = best.host;
    need.smallest_fraction = best.fit.smallest_fraction;
    need.tolerance = best.step * kNoExposure;
    need.exposed = best.exposed_copies;
    need.link_out = link_.device_to_host.value;
    need.link_in = link_.host_to_device.value;
    if (best.device_to_host + best.host_to_device > Bytes(0))
      if (auto wrong = find_rates(need)) return *wrong;
    if (auto wrong = find_break_even(need)) return *wrong;
    return need;
  }

 private:
  Result<Seconds> exposed_at(const PlannedStep& step, double out, double in) const {
    const auto run = OtherMachine(evaluator_, with_link_rates(evaluator_.profile(),
                                                              link_.device_to_host.value * out,
                                                              link_.host_to_device.value * in))
                         .run(step);
    if (!run.ok()) return run.error();
    return run->exposed_device_to_host + run->exposed_host_to_device;
  }

  std::optional<Error> find_rates(Requirements& need) const {
    const Result<PlannedStep> planned = make_planned_step(evaluator_, plan_, plan_.best);
    if (!planned.ok()) return planned.error();
    const PlannedStep& step = *planned;
    const auto rate = [&](bool out) -> Result<std::optional<double>> {
      return smallest_factor(1 / kMostLink, kMostLink, [&](double factor) -> Result<bool> {
        const auto exposed = exposed_at(step, out ? factor : kMostLink, out ? kMostLink : factor);
        if (!exposed.ok()) return exposed.error();
        return *exposed <= need.tolerance;
      });
    };
    const auto out = rate(true), in = rate(false);
    if (!out.ok()) return out.error();
    if (!in.ok()) return in.error();
    if (*out) need.device_to_host = link_.device_to_host.value * **out;
    if (*in) need.host_to_device = link_.host_to_device.value * **in;
    const auto fastest = exposed_at(step, kMostLink, kMostLink);
    if (!fastest.ok()) return fastest.error();
    need.exposed_at_most_link = *fastest;
    const auto both = exposed_at(step, out->value_or(kMostLink), in->value_or(kMostLink));
    if (!both.ok()) return both.error();
    need.exposed_with_both = *both;
    return std::nullopt;
  }

  static bool moves(const PolicyCase& outcome) {
    return outcome.device_to_host + outcome.host_to_device > Bytes(0);
  }

  std::optional<Error> find_break_even(Requirements& need) const {
    if (!moves(plan_.best)) {
      const std::vector<PolicyCase> shown = shown_policies(plan_);
      const PolicyCase* fastest = nullptr;
      for (const PolicyCase& outcome : shown)
        if (moves(outcome) && outcome.fit.fits &&
            (fastest == nullptr || outcome.step < fastest->step))
          fastest = &outcome;
      return fastest == nullptr
                 ? std::nullopt
                 : add("the fastest that moves against this plan", *fastest, plan_.best, need);
    }
    const std::pair<const char*, Choice> others[] = {
        {"against recomputing what it offloads", Choice::kRecompute},
        {"against keeping what it offloads", Choice::kKeep}};
    for (const auto& [name, choice] : others) {
      const auto policy = without_host(plan_.handles, plan_.best.policy, choice);
      if (!policy) continue;
      CaseBook cases(evaluator_, plan_.order, 1);
      if (auto wrong = cases.simulate({*policy})) return wrong;
      if (auto wrong = add(name, plan_.best, cases.at(*policy), need)) return wrong;
    }
    // Both are the same where nothing can be recomputed.
    if (need.break_even.size() == 2 && need.break_even[0].rival == need.break_even[1].rival)
      need.break_even.erase(need.break_even.begin());
    return std::nullopt;
  }

  std::optional<Error> add(const char* name, const PolicyCase& moving, const PolicyCase& rival,
                           Requirements& need) const {
    const auto one = make_planned_step(evaluator_, plan_, moving);
    if (!one.ok()) return one.error();
    const auto other = make_planned_step(evaluator_, plan_, rival);
    if (!other.ok()) return other.error();
    const auto factor = smallest_factor(1 / kMostLink, kMostLink, [&](double at) -> Result<bool> {
      const OtherMachine machine(evaluator_, with_link(evaluator_.profile(), at));
      const auto a = machine.run(*one), b = machine.run(*other);
      if (!a.ok()) return a.error();
      if (!b.ok()) return b.error();
      return a->step <= b->step;
    });
    if (!factor.ok()) return factor.error();
    BreakEven row{name, moving.policy, rival.policy, rival.step, rival.fit.fits, *factor, false};
    row.always = row.factor && *row.factor <= 1 / kMostLink;
    need.break_even.push_back(std::move(row));
    return std::nullopt;
  }

  const Evaluator& evaluator_;
  const PlanResult& plan_;
  const HostLink& link_;
};

}  // namespace

Result<Requirements> find_requirements(const Evaluator& evaluator, const PlanResult& plan) {
  return Asking(evaluator, plan).run();
}

Result<SizedRequirements> find_requirements_at(const Evaluator& evaluator, const PlanResult& plan,
                                               const SizedStep& step) {
  PlanResult at;
  at.handles = evaluator.handles();
  at.order = plan.order;
  Policy policy = compiled_policy(at.handles);
  for (std::size_t k = 0; k < at.handles.size(); ++k) {
    const auto planned = std::ranges::find(plan.handles, at.handles[k].name, &Handle::name);
    if (planned == plan.handles.end()) continue;
    const Choice choice =
        plan.best.policy[static_cast<std::size_t>(planned - plan.handles.begin())];
    const std::vector<Choice> choices = choices_of(at.handles[k]);
    if (std::ranges::find(choices, choice) != choices.end()) policy[k] = choice;
  }
  Result<PolicyCase> outcome = evaluator.evaluate_planned(policy, plan.order);
  if (!outcome.ok()) return outcome.error();
  at.best = std::move(outcome).value();
  at.fits = at.best.fit.fits;
  const Result<Requirements> need = find_requirements(evaluator, at);
  if (!need.ok()) return need.error();
  return SizedRequirements{step.size, at.handles, at.best, *need, step.assumptions};
}

}  // namespace spillway
