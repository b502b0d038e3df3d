// Policies that were simulated, each once: what a search may compare.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/planner/evaluate.h"

namespace spillway {

/// Whether `a` is the better answer: fitting before not, then faster, then less HBM, then less
/// host. Among those that do not fit the one that misses by least.
bool is_better(const PolicyCase& a, const PolicyCase& b);

/// By how much a case misses its budget, HBM and host together.
inline Bytes missed(const PolicyCase& c) { return c.missed; }

class CaseBook {
 public:
  /// Policies are simulated in the order that XLA makes of them under `order`, but for the compiled
  /// one, which has the order of its program. What comes out does not depend on the number of
  /// threads.
  /// `simulated` is called after each case, by any thread.
  CaseBook(const Evaluator& evaluator, const ScheduleSettings& order, std::size_t threads,
           std::function<void()> simulated = {})
      : evaluator_(evaluator), order_(order), threads_(threads), simulated_(std::move(simulated)) {}

  CaseBook(const CaseBook&) = delete;  // the best points into it

  /// Simulates those that are not known yet. An error: the first for which that failed.
  std::optional<Error> simulate(std::vector<Policy> policies);

  const PolicyCase& at(const Policy& policy) const { return cases_.at(policy); }
  std::size_t size() const { return cases_.size(); }
  /// What may be proposed, by policy: what the program must not have (is_allowed) is not among it.
  std::vector<PolicyCase> allowed() const;
  /// Of `allowed`, which must not be empty.
  const PolicyCase& best() const;
  /// Of those that need no more HBM than `room`; of all where none does.
  const PolicyCase& best(Bytes room) const;

 private:
  const Evaluator& evaluator_;
  ScheduleSettings order_;
  std::size_t threads_;
  std::function<void()> simulated_;
  std::map<Policy, PolicyCase> cases_;
  const PolicyCase* best_ = nullptr;  ///< in `cases_`
};

}  // namespace spillway
