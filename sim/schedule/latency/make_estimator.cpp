#include "sim/schedule/latency/make_estimator.h"

#include "model/base/check.h"
#include "sim/schedule/latency/analytical_estimator.h"
#include "sim/schedule/latency/profile_guided_estimator.h"
#include "sim/schedule/latency/sol_estimator.h"
#include "sim/schedule/latency/tshirt_estimator.h"

namespace spillway {
namespace {

/// Of costs that need no profile.
std::unique_ptr<LatencyEstimator> make_plain(BelievedCosts costs, const HardwareProfile& profile,
                                             std::int64_t partition_size) {
  switch (costs) {
    case BelievedCosts::kSpeedOfLight:
      return std::make_unique<SolEstimator>(
          profile, SolOptions{.network = network_belief(profile.device.compute_capability),
                              .partition_size = partition_size});
    case BelievedCosts::kAnalytical:
      return std::make_unique<AnalyticalEstimator>(profile);
    case BelievedCosts::kTShirt:
    case BelievedCosts::kProfile:
      break;
  }
  return std::make_unique<TshirtEstimator>();
}

}  // namespace

std::unique_ptr<LatencyEstimator> make_estimator(const SchedulerChoice& choice,
                                                 const HardwareProfile& profile,
                                                 EstimatorInput input) {
  check(choice.hides_latencies, "costs are believed only where latencies are hidden");
  check(choice.costs && choice.rest, "costs are those of a device that is known");
  auto rest = make_plain(*choice.rest, profile, input.partition_size);
  if (*choice.costs != BelievedCosts::kProfile) return rest;
  check(input.measured.has_value(), "a profile-guided estimator needs a profile");
  return std::make_unique<ProfileGuidedEstimator>(*std::move(input.measured), std::move(rest));
}

}  // namespace spillway
