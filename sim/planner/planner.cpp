#include "sim/planner/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "model/base/format.h"
#include "sim/planner/baselines.h"
#include "sim/planner/branch_and_bound.h"
#include "sim/planner/linear_search.h"
#include "sim/planner/local_search.h"
#include "sim/planner/policy_bounds.h"

namespace spillway {
namespace {

constexpr std::size_t kAlternatives = 3;

/// Of the budget's room, where policies are searched without proof.
constexpr std::int64_t kEighthsOfRoom[] = {8, 6, 4, 3};

std::string doing(Choice choice) {
  switch (choice) {
    case Choice::kKeep:
      return "keeping it";
    case Choice::kOffload:
      return "offloading it";
    case Choice::kRecompute:
      return "recomputing it";
  }
  return "";
}

class Planner {
 public:
  Planner(const Evaluator& evaluator, const PlanOptions& options)
      : evaluator_(evaluator),
        options_(options),
        handles_(evaluator.handles()),
        book_(evaluator, order(), options.threads, options.simulated) {
    for (const Handle& handle : handles_) choices_.push_back(choices_of(handle));
  }

  Result<PlanResult> run();

 private:
  /// Pipelining is only simulated for what XLA compiled, and so no part of the comparison.
  ScheduleSettings order() const {
    ScheduleSettings order = options_.order.value_or(evaluator_.default_order());
    order.pipelines_host_copies = false;
    return order;
  }
  std::size_t most_simulated() const {
    if (options_.most_simulated) return *options_.most_simulated;
    const std::size_t each = evaluator_.instruction_count();
    const double policies = count_policies(handles_);
    if (policies <= kSmallSpace &&
        policies * static_cast<double>(each) <= kInstructionsOfSmallSpace)
      return static_cast<std::size_t>(policies);
    return std::min(kMostSimulated, kMostInstructions / each);
  }

  // These simulate, and return the error of the first policy for which that failed.
  std::optional<Error> compare(const PolicyBounds& bounds, PlanResult& result);

  void choose(PlanResult& result) const;
  Reason reason_of(const PlanResult& result, std::size_t handle) const;
  std::string other_text(const PlanResult& result, std::size_t handle, Choice choice) const;

  const Evaluator& evaluator_;
  PlanOptions options_;
  const std::vector<Handle>& handles_;
  std::vector<std::vector<Choice>> choices_;  ///< of each handle
  CaseBook book_;
};

Result<PlanResult> Planner::run() {
  PlanResult result;
  result.handles = handles_;
  result.order = order();
  PolicyBounds bounds(evaluator_);
  if (auto wrong = compare(bounds, result)) return *wrong;
  if (!options_.ranks) {
    result.ranked = false;
    result.simulated = book_.size();
    result.best = book_.at(compiled_policy(handles_));
    result.fits = result.best.fit.fits;
    return result;
  }
  const auto search = branch_and_bound(evaluator_, bounds, most_simulated(), book_);
  if (!search.ok()) return search.error();
  result.policies = search->policies;
  result.proven = search->proven;
  if (!search->proven)
    for (const std::int64_t eighths : kEighthsOfRoom)
      if (auto wrong = search_linearly(evaluator_, evaluator_.budget().room() * eighths / 8, book_))
        return *wrong;
  const Policy searched = book_.best().policy;
  LocalSearch nearby(evaluator_, most_simulated(), book_);
  if (auto wrong = search->proven ? nearby.improve() : nearby.improve_widely()) return *wrong;
  result.proven &= book_.best().policy == searched;
  choose(result);
  result.lower_bound =
      result.proven ? result.best.step : std::min(search->left_out_from, result.best.step);
  if (result.best.step > Seconds(0)) result.gap = 1 - ratio(result.lower_bound, result.best.step);
  for (std::size_t k = 0; k < handles_.size(); ++k) result.reasons.push_back(reason_of(result, k));
  if (result.fits) result.split = find_layer_split(evaluator_, book_);
  result.simulated = book_.size();
  if (result.fits) {
    auto layered =
        find_layered_plan(evaluator_, book_, order(), options_.threads, options_.simulated);
    if (!layered.ok()) return layered.error();
    result.by_layer = std::move(layered).value();
  }
  return result;
}

std::optional<Error> Planner::compare(const PolicyBounds& bounds, PlanResult& result) {
  const std::vector<Baseline> all = baselines(bounds.facts());
  std::vector<Policy> policies = {allowed_policy(handles_)};
  for (const Baseline& baseline : all)
    policies.insert(policies.end(), baseline.chain.begin(), baseline.chain.end());
  if (auto wrong = book_.simulate(std::move(policies))) return wrong;
  for (const Baseline& baseline : all) {
    const auto fits = [this](const Policy& policy) { return book_.at(policy).fit.fits; };
    const auto last = std::find_if(baseline.chain.rbegin(), baseline.chain.rend(), fits);
    result.baselines.push_back(
        {baseline.name, book_.at(last == baseline.chain.rend() ? baseline.chain.front() : *last)});
  }
  return std::nullopt;
}

void Planner::choose(PlanResult& result) const {
  std::vector<PolicyCase> sorted = book_.allowed();
  std::ranges::sort(sorted, is_better);
  result.best = sorted.front();
  result.fits = result.best.fit.fits;
  for (std::size_t k = 1; k < sorted.size() && result.alternatives.size() < kAlternatives; ++k)
    if (sorted[k].fit.fits == result.fits) result.alternatives.push_back(sorted[k]);

  std::ranges::sort(sorted, [](const PolicyCase& a, const PolicyCase& b) {
    return a.peak_device != b.peak_device ? a.peak_device < b.peak_device : a.step < b.step;
  });
  for (const PolicyCase& outcome : sorted)
    if (result.pareto.empty() || outcome.step < result.pareto.back().step)
      result.pareto.push_back(outcome);
}

std::string Planner::other_text(const PlanResult& result, std::size_t k, Choice choice) const {
  const PolicyCase& other = book_.at(with_choice(result.best.policy, k, choice));
  std::string text =
      fmt::format("{}: {} a step, {} of HBM, {} on the host", doing(choice),
                  signed_text(other.step - result.best.step, format_seconds),
                  signed_text(other.peak_device - result.best.peak_device, format_bytes),
                  signed_text(other.host - result.best.host, format_bytes));
  if (result.fits && other.missed > Bytes(0))
    text += fmt::format(", misses {}", fmt::join(misses_of(other.fit), ", "));
  return text;
}

Reason Planner::reason_of(const PlanResult& result, std::size_t k) const {
  const Handle& handle = handles_[k];
  Reason reason{.handle = handle.name, .choice = result.best.policy[k], .lines = {}};
  if (!handle.fixed_because.empty())
    reason.lines.push_back((choices_[k].size() > 1 ? "cannot be moved: " : "stays as compiled: ") +
                           handle.fixed_because);
  if (!handle.device_only_because.empty())
    reason.lines.push_back("must not be offloaded: " + handle.device_only_because);
  if (is_name(handle) && !handle.saved_because.empty() &&
      handle.saved_because != handle.fixed_because)
    reason.lines.push_back("cannot be recomputed: " + handle.saved_because);
  for (const Choice choice : choices_[k])
    if (choice != reason.choice) reason.lines.push_back(other_text(result, k, choice));
  if (reason.choice != Choice::kKeep && std::ranges::count(choices_[k], Choice::kKeep) > 0) {
    const PolicyCase& kept = book_.at(with_choice(result.best.policy, k, Choice::kKeep));
    reason.keeps_in_less =
        kept.peak_device < result.best.peak_device && kept.step > result.best.step;
  }
  return reason;
}

}  // namespace

std::string Reason::text() const { return fmt::format("{}", fmt::join(lines, "; ")); }

Result<PlanResult> make_plan(const Evaluator& evaluator, const PlanOptions& options) {
  return Planner(evaluator, options).run();
}

}  // namespace spillway
