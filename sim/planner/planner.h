// Which policy is best: fastest simulated step among those that fit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/planner/case_book.h"
#include "sim/planner/layer_split.h"
#include "sim/planner/layered_plan.h"

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
  /// What each other choice would cost, from simulating it; and why one cannot be chosen.
  std::vector<std::string> lines;
  bool keeps_in_less = false;  ///< keeping it would take less HBM, and more time

  std::string text() const;  ///< in one
};

/// What a proof may take: policies, and instructions of all of them together (programs of unrolled
/// layers have tens of thousands).
inline constexpr std::size_t kMostSimulated = 1024;
inline constexpr std::size_t kMostInstructions = 4'000'000;
/// The same for a space that can be gone through to its end.
inline constexpr std::size_t kSmallSpace = 4096;
inline constexpr std::size_t kInstructionsOfSmallSpace = 12'000'000;

struct PlanOptions {
  std::size_t threads = 2;  ///< the result does not depend on it
  /// Of XLA's flags, what decides orders; empty: XLA's defaults.
  std::optional<ScheduleSettings> order = {};
  /// The search for a proof simulates so many policies at most; what is not proven then is improved
  /// step by step. Empty: as many as kMostSimulated and kMostInstructions allow, and spaces of no
  /// more than kSmallSpace are gone through.
  std::optional<std::size_t> most_simulated = {};
  /// Whether the best is searched for; else only the baselines are simulated.
  bool ranks = true;
  /// Called after each policy that is simulated, by any thread: how far the search has come.
  std::function<void()> simulated = {};
};

struct PlanResult {
  std::vector<Handle> handles;
  /// Whether there is a best at all; else nothing but `baselines` says anything.
  bool ranked = true;
  /// The fastest that fits; when none does, the closest: what it misses, HBM and host together, is
  /// the least. Where nothing is ranked, the program as compiled.
  PolicyCase best;
  bool fits = false;
  double policies = 1;  ///< that there are
  bool proven = false;  ///< no policy is better: each was simulated or is left out by a bound
  std::size_t simulated = 0;
  Seconds lower_bound;     ///< no policy that fits is faster
  double gap = 0;          ///< (best - bound) / best
  ScheduleSettings order;  ///< what the policies were ordered under
  std::vector<NamedCase> baselines;
  std::vector<PolicyCase> alternatives;  ///< runners-up that were simulated and fit, fastest first
  std::vector<PolicyCase> pareto;        ///< none simulated needs less HBM and is as fast; by HBM
  std::vector<Reason> reasons;           ///< one a handle
  std::optional<LayerSplit> split;       ///< of a scan, where that would be faster
  std::optional<LayeredPlan> by_layer;   ///< of unrolled layers, where that is faster
};

/// An error: a policy cannot be simulated.
Result<PlanResult> make_plan(const Evaluator& evaluator, const PlanOptions& options = {});

}  // namespace spillway
