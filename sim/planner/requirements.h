// The reverse questions: what a machine has to offer for a plan to cost nothing, and for it to be
// worth while at all. Found by bisection over simulated links; kernels and XLA's order stay.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planner/rerun.h"
#include "sim/scale/sized_steps.h"

namespace spillway {

/// A link that is `most` times as fast as the machine's is the fastest tried, and so much slower
/// the slowest; found to within kRateWidth.
inline constexpr double kMostLink = 64;
inline constexpr double kRateWidth = 0.005;
/// Exposed copies below this share of the step are none.
inline constexpr double kNoExposure = 0.001;

/// Where two plans take equally long: below it `rival` is faster, above it the plan that moves.
struct BreakEven {
  std::string name;  ///< "recompute what it offloads", …
  Policy moving, rival;
  Seconds rival_step;
  bool rival_fits = false;
  /// As many times as fast as the machine's link; empty: no rate up to kMostLink makes the moving
  /// one win, or (`always`) it wins at the slowest.
  std::optional<double> factor;
  bool always = false;
};

struct Requirements {
  Bytes hbm, host;           ///< that the plan takes
  double smallest_fraction;  ///< of the HBM
  Seconds tolerance;         ///< of exposed copies
  Seconds exposed;           ///< with the machine's link
  /// Each with the other direction without limit, then checked together; empty: no rate up to
  /// kMostLink hides it.
  std::optional<BytesPerSecond> device_to_host, host_to_device;
  Seconds exposed_with_both;         ///< at those two rates together
  Seconds exposed_at_most_link;      ///< at the fastest link tried: order and latency, not the rate
  BytesPerSecond link_out, link_in;  ///< the machine's
  std::vector<BreakEven> break_even;
};

/// Of the plan's best policy. An error: a policy cannot be simulated there.
Result<Requirements> find_requirements(const Evaluator& evaluator, const PlanResult& plan);

/// What the plan's policy needs of the step at another size.
struct SizedRequirements {
  StepSize size;
  std::vector<Handle> handles;  ///< of the step at that size
  PolicyCase outcome;
  Requirements need;
  std::vector<std::string> assumptions;  ///< about the size
};

/// `evaluator` is of the step at another size: names go by name, and what the plan does not know
/// stays as compiled. An error: the policy cannot be simulated.
Result<SizedRequirements> find_requirements_at(const Evaluator& evaluator, const PlanResult& plan,
                                               const SizedStep& step);

}  // namespace spillway
