#include "sim/planner/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "model/base/format.h"
#include "sim/planner/baselines.h"
#include "sim/planner/branch_and_bound.h"
#include "sim/planner/linear_search.h"
#include "sim/planner/policy_bounds.h"

namespace spillway {
namespace {

constexpr std::size_t kAlternatives = 3;

Policy with(Policy policy, std::size_t handle, Choice choice) {
  policy[handle] = choice;
  return policy;
}

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
    return std::min(options_.most_simulated,
                    options_.instruction_limit / evaluator_.instruction_count());
  }

  // These simulate, and return the error of the first policy for which that failed.
  std::optional<Error> compare(const PolicyBounds& bounds, PlanResult& result);
  std::optional<Error> improve(bool is_proven);

  void choose(PlanResult& result) const;
  Reason reason_of(const PlanResult& result, std::size_t handle) const;
  std::string other_text(const PlanResult& result, std::size_t handle, Choice choice) const;
  std::vector<Policy> one_moved(const Policy& policy) const;
  std::vector<Policy> two_moved(const Policy& policy) const;

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
    if (auto wrong = search_linearly(evaluator_, book_)) return *wrong;
  const Policy searched = book_.best().policy;
  if (auto wrong = improve(search->proven)) return *wrong;
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

std::vector<Policy> Planner::one_moved(const Policy& policy) const {
  std::vector<Policy> found;
  for (std::size_t k = 0; k < handles_.size(); ++k)
    for (const Choice choice : choices_[k])
      if (choice != policy[k]) found.push_back(with(policy, k, choice));
  return found;
}

/// Two handles that exchange what becomes of them.
std::vector<Policy> Planner::two_moved(const Policy& policy) const {
  const auto may = [this](std::size_t k, Choice choice) {
    return std::ranges::find(choices_[k], choice) != choices_[k].end();
  };
  std::vector<Policy> found;
  for (std::size_t a = 0; a < handles_.size(); ++a)
    for (std::size_t b = a + 1; b < handles_.size(); ++b)
      if (policy[a] != policy[b] && may(a, policy[b]) && may(b, policy[a]))
        found.push_back(with(with(policy, a, policy[b]), b, policy[a]));
  return found;
}

/// From the best on, and from the compiled policy, the best neighbour as long as it is better; the
/// neighbours are the reasons, too.
std::optional<Error> Planner::improve(bool is_proven) {
  if (!is_proven)
    if (auto wrong = book_.simulate(one_moved(allowed_policy(handles_)))) return wrong;
  for (Policy at = book_.best().policy;;) {
    if (auto wrong = book_.simulate(one_moved(at))) return wrong;
    if (book_.best().policy == at && !is_proven)
      if (auto wrong = book_.simulate(two_moved(at))) return wrong;
    if (book_.best().policy == at) return std::nullopt;
    at = book_.best().policy;
  }
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
  const PolicyCase& other = book_.at(with(result.best.policy, k, choice));
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
  Reason reason{handle.name, result.best.policy[k], {}};
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
  return reason;
}

}  // namespace

std::string Reason::text() const { return fmt::format("{}", fmt::join(lines, "; ")); }

Result<PlanResult> make_plan(const Evaluator& evaluator, const PlanOptions& options) {
  return Planner(evaluator, options).run();
}

}  // namespace spillway
