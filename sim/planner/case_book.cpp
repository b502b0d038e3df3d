#include "sim/planner/case_book.h"

#include <algorithm>

#include "model/base/parallel.h"

namespace spillway {

bool is_better(const PolicyCase& a, const PolicyCase& b) {
  if (a.fit.fits != b.fit.fits) return a.fit.fits;
  if (missed(a) != missed(b)) return missed(a) < missed(b);
  if (a.step != b.step) return a.step < b.step;
  if (a.peak_device != b.peak_device) return a.peak_device < b.peak_device;
  if (a.host != b.host) return a.host < b.host;
  return a.policy < b.policy;
}

std::optional<Error> CaseBook::simulate(std::vector<Policy> policies) {
  std::ranges::sort(policies);
  policies.erase(std::unique(policies.begin(), policies.end()), policies.end());
  std::erase_if(policies, [this](const Policy& policy) { return cases_.contains(policy); });
  std::vector<std::optional<Result<PolicyCase>>> results(policies.size());
  for_each_piece(policies.size(), threads_, [&](std::size_t k) {
    results[k] = evaluator_.evaluate_planned(policies[k], order_);
    if (simulated_) simulated_();
  });
  for (std::size_t k = 0; k < policies.size(); ++k) {
    if (!results[k]->ok()) return results[k]->error();
    const auto known = cases_.emplace(policies[k], *std::move(*results[k])).first;
    const bool may_be_best = is_allowed(evaluator_.handles(), known->first);
    if (may_be_best && (best_ == nullptr || is_better(known->second, *best_)))
      best_ = &known->second;
  }
  return std::nullopt;
}

std::vector<PolicyCase> CaseBook::allowed() const {
  std::vector<PolicyCase> allowed;
  for (const auto& [policy, outcome] : cases_)
    if (is_allowed(evaluator_.handles(), policy)) allowed.push_back(outcome);
  return allowed;
}

const PolicyCase& CaseBook::best() const {
  check(best_ != nullptr, "no policy was simulated that may be proposed");
  return *best_;
}

const PolicyCase& CaseBook::best(Bytes room) const {
  const PolicyCase* found = nullptr;
  for (const auto& [policy, outcome] : cases_)
    if (outcome.peak_device <= room && is_allowed(evaluator_.handles(), policy) &&
        (found == nullptr || is_better(outcome, *found)))
      found = &outcome;
  return found != nullptr ? *found : best();
}

}  // namespace spillway
