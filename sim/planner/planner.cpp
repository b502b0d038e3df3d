#include "sim/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "model/base/format.h"
#include "model/base/parallel.h"
#include "sim/planner/baselines.h"

namespace spillway {
namespace {

constexpr std::size_t kAlternatives = 3;

/// Whether `a` is the better answer: fitting before not, then faster, then less HBM, then less
/// host. Among those that do not fit the one that misses by least.
bool better(const PolicyCase& a, const PolicyCase& b) {
  if (a.fit.fits != b.fit.fits) return a.fit.fits;
  const Bytes over_a = a.fit.over_hbm + a.fit.over_host;
  const Bytes over_b = b.fit.over_hbm + b.fit.over_host;
  if (over_a != over_b) return over_a < over_b;
  if (a.step != b.step) return a.step < b.step;
  if (a.peak_device != b.peak_device) return a.peak_device < b.peak_device;
  if (a.host != b.host) return a.host < b.host;
  return a.policy < b.policy;
}

class Search {
 public:
  Search(const Evaluator& evaluator, const PlanOptions& options)
      : evaluator_(evaluator), options_(options) {
    for (std::size_t k = 0; k < evaluator.handles().size(); ++k)
      if (const Handle& handle = evaluator.handles()[k];
          handle.fixed_because.empty() && handle.device_only_because.empty())
        movable_.push_back(k);
  }

  Result<PlanResult> run() {
    PlanResult result;
    result.handles = evaluator_.handles();
    for (const Baseline& baseline : baselines()) {
      const Policy policy = baseline.propose(evaluator_.handles());
      if (const auto wrong = simulate_all({policy})) return *wrong;
      result.baselines.push_back({baseline.name, cases_.at(policy)});
    }
    result.proven = movable_.size() < 20 && (std::size_t{1} << movable_.size()) <= most_policies();
    if (const auto wrong = result.proven ? search_all() : improve()) return *wrong;
    choose(result);
    if (const auto wrong = explain(result)) return *wrong;
    result.simulated = cases_.size();
    return result;
  }

 private:
  // These simulate, and return the error of the first policy for which that failed.
  std::optional<Error> simulate_all(std::vector<Policy> policies);
  std::optional<Error> search_all();
  std::size_t most_policies() const {
    return std::min(options_.exhaustive_limit,
                    options_.instruction_limit / evaluator_.instruction_count());
  }
  std::optional<Error> improve();
  std::optional<Error> explain(PlanResult& result);

  void choose(PlanResult& result) const;
  Reason reason_of(const PlanResult& result, std::size_t handle) const;
  std::vector<Policy> neighbours(const Policy& policy) const;
  std::vector<PolicyCase> allowed_cases() const;
  PolicyCase best() const;

  const Evaluator& evaluator_;
  PlanOptions options_;
  std::vector<std::size_t> movable_;  ///< handles
  std::map<Policy, PolicyCase> cases_;
};

template <typename Q>
std::string signed_text(Q difference, std::string (*format)(Q)) {
  return difference < Q(0) ? "-" + format(Q(0) - difference) : "+" + format(difference);
}

Policy flipped(Policy policy, std::size_t k) {
  policy[k] = policy[k] == Choice::kKeep ? Choice::kOffload : Choice::kKeep;
  return policy;
}

/// Simulates those not known yet.
std::optional<Error> Search::simulate_all(std::vector<Policy> policies) {
  std::erase_if(policies, [this](const Policy& policy) { return cases_.contains(policy); });
  std::vector<std::optional<Result<PolicyCase>>> results(policies.size());
  for_each_piece(policies.size(), options_.threads,
                 [&](std::size_t k) { results[k] = evaluator_.evaluate(policies[k]); });
  for (std::size_t k = 0; k < policies.size(); ++k) {
    if (!results[k]->ok()) return results[k]->error();
    cases_.emplace(policies[k], *std::move(*results[k]));
  }
  return std::nullopt;
}

std::optional<Error> Search::search_all() {
  std::vector<Policy> policies;
  const Policy start = allowed_policy(evaluator_.handles());
  for (std::size_t mask = 0; mask < (std::size_t{1} << movable_.size()); ++mask) {
    Policy policy = start;
    for (std::size_t k = 0; k < movable_.size(); ++k)
      policy[movable_[k]] = (mask >> k & 1) != 0 ? Choice::kOffload : Choice::kKeep;
    policies.push_back(std::move(policy));
  }
  return simulate_all(std::move(policies));
}

/// One handle moved, or two in opposite directions.
std::vector<Policy> Search::neighbours(const Policy& policy) const {
  std::vector<Policy> found;
  for (std::size_t a = 0; a < movable_.size(); ++a) {
    const Policy one = flipped(policy, movable_[a]);
    found.push_back(one);
    for (std::size_t b = a + 1; b < movable_.size(); ++b)
      if (policy[movable_[a]] != policy[movable_[b]]) found.push_back(flipped(one, movable_[b]));
  }
  return found;
}

/// From the best baseline on, the best neighbour as long as it is better.
std::optional<Error> Search::improve() {
  for (Policy at = best().policy;;) {
    if (auto wrong = simulate_all(neighbours(at))) return wrong;
    if (best().policy == at) return std::nullopt;
    at = best().policy;
  }
}

/// What was simulated and may be proposed: the compiled policy may not be, and stands there only to
/// compare with.
std::vector<PolicyCase> Search::allowed_cases() const {
  std::vector<PolicyCase> allowed;
  for (const auto& [policy, outcome] : cases_)
    if (is_allowed(evaluator_.handles(), policy)) allowed.push_back(outcome);
  return allowed;
}

PolicyCase Search::best() const { return std::ranges::min(allowed_cases(), better); }

void Search::choose(PlanResult& result) const {
  std::vector<PolicyCase> sorted = allowed_cases();
  std::ranges::sort(sorted, better);
  result.best = sorted.front();
  result.fits = result.best.fit.fits;
  for (std::size_t k = 1; k < sorted.size() && result.alternatives.size() < kAlternatives; ++k)
    if (sorted[k].fit.fits == result.fits) result.alternatives.push_back(sorted[k]);
  result.lower_bound =
      result.proven ? result.best.step : std::min(evaluator_.lower_bound(), result.best.step);
  if (result.best.step > Seconds(0)) result.gap = 1 - ratio(result.lower_bound, result.best.step);

  std::ranges::sort(sorted, [](const PolicyCase& a, const PolicyCase& b) {
    return a.peak_device != b.peak_device ? a.peak_device < b.peak_device : a.step < b.step;
  });
  for (const PolicyCase& outcome : sorted)
    if (result.pareto.empty() || outcome.step < result.pareto.back().step)
      result.pareto.push_back(outcome);
}

/// For each handle: what the other choice would have given, by simulating it.
std::optional<Error> Search::explain(PlanResult& result) {
  std::vector<Policy> others;
  for (const std::size_t k : movable_) others.push_back(flipped(result.best.policy, k));
  if (auto wrong = simulate_all(others)) return wrong;
  for (std::size_t k = 0; k < result.handles.size(); ++k)
    result.reasons.push_back(reason_of(result, k));
  return std::nullopt;
}

Reason Search::reason_of(const PlanResult& result, std::size_t k) const {
  const Handle& handle = result.handles[k];
  Reason reason{handle.name, result.best.policy[k], ""};
  if (!handle.fixed_because.empty()) {
    reason.text = "stays as compiled: " + handle.fixed_because;
    return reason;
  }
  if (!handle.device_only_because.empty()) {
    reason.text = "must not be offloaded: " + handle.device_only_because;
    return reason;
  }
  const PolicyCase& other = cases_.at(flipped(result.best.policy, k));
  const std::string otherwise = reason.choice == Choice::kKeep ? "offloading it" : "keeping it";
  reason.text = fmt::format("{}: {} a step, {} of HBM, {} on the host", otherwise,
                            signed_text(other.step - result.best.step, format_seconds),
                            signed_text(other.peak_device - result.best.peak_device, format_bytes),
                            signed_text(other.host - result.best.host, format_bytes));
  if (result.fits && other.fit.over_hbm > Bytes(0))
    reason.text += fmt::format("; misses the budget by {}", format_bytes(other.fit.over_hbm));
  if (result.fits && other.fit.over_host > Bytes(0))
    reason.text += fmt::format("; {} too much for the host", format_bytes(other.fit.over_host));
  return reason;
}

}  // namespace

Result<PlanResult> make_plan(const Evaluator& evaluator, const PlanOptions& options) {
  return Search(evaluator, options).run();
}

}  // namespace spillway
