// How the answer moves when the machine is not quite as the profile says: with the link, the
// compute units, the HBM's bandwidth and the budget for HBM 10 and 20 % off, which policy is best
// then, and where the two change places.
//
// Asked of the policies that the plan shows, not searched anew: a policy that is good on another
// machine only is not found.
#pragma once

#include <string_view>

#include "sim/planner/rerun.h"

namespace spillway {

enum class Knob { kLink, kCompute, kHbmBandwidth, kHbmBudget };
inline constexpr Knob kKnobs[] = {Knob::kLink, Knob::kCompute, Knob::kHbmBandwidth,
                                  Knob::kHbmBudget};
/// "link", "compute", "hbm bandwidth", "hbm budget".
std::string_view name_of(Knob knob);

inline constexpr double kFactors[] = {0.8, 0.9, 1.1, 1.2};

/// With one knob turned.
struct TurnedCase {
  Knob knob = Knob::kLink;
  double factor = 1;
  Policy best;   ///< of those asked
  Seconds step;  ///< its
  Seconds step_of_plan;
  bool plan_fits = true;
};

/// Where another policy takes over, going away from 1 up to the last of kFactors: at `factor` it is
/// better already, to within kSwitchWidth.
struct Switch {
  Knob knob = Knob::kLink;
  double factor = 1;
  Policy to;
};
inline constexpr double kSwitchWidth = 0.002;

struct Sensitivity {
  std::vector<TurnedCase> cases;   ///< by knob and factor
  std::vector<Switch> switches;    ///< at most two a knob
  std::size_t policies_asked = 0;  ///< of a plan
};

/// A policy must be faster by this share of the step to take over; closer ones are as good.
inline constexpr double kAsGood = 0.0005;

/// An error: a policy cannot be simulated there.
Result<Sensitivity> find_sensitivity(const Evaluator& evaluator, const PlanResult& plan,
                                     std::size_t threads);

}  // namespace spillway
