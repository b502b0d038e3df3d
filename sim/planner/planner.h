// Which policy is best: fastest simulated step among those that fit.
#pragma once

#include <string>
#include <vector>

#include "sim/planner/evaluate.h"

namespace spillway {

/// A policy with a name of its own, for comparison.
struct NamedCase {
  std::string name;
  PolicyCase result;
};

/// Why a handle went where it did in the best policy.
struct Reason {
  std::string handle;
  Choice choice = Choice::kKeep;
  std::string text;  ///< what the other choice would cost, from simulating it
};

struct PlanOptions {
  std::size_t threads = 2;  ///< the result does not depend on it
  /// Spaces up to this many policies are searched whole; larger ones by improving step by step.
  std::size_t exhaustive_limit = 1024;
  /// The same where it is fewer: so many instructions, each policy's counted, are simulated in some
  /// ten seconds. Programs of unrolled layers have tens of thousands.
  std::size_t instruction_limit = 6'000'000;
};

struct PlanResult {
  std::vector<Handle> handles;
  /// The fastest that fits; when none does, the closest: what it misses, HBM and host together, is
  /// the least.
  PolicyCase best;
  bool fits = false;
  bool proven = false;  ///< every policy was simulated
  std::size_t simulated = 0;
  Seconds lower_bound;  ///< no policy that fits is faster
  double gap = 0;       ///< (best - bound) / best
  std::vector<NamedCase> baselines;
  std::vector<PolicyCase> alternatives;  ///< runners-up that fit, fastest first
  std::vector<PolicyCase> pareto;        ///< no other needs less HBM and is as fast; by HBM
  std::vector<Reason> reasons;           ///< one a handle
};

/// An error: a policy cannot be simulated.
Result<PlanResult> make_plan(const Evaluator& evaluator, const PlanOptions& options = {});

}  // namespace spillway
