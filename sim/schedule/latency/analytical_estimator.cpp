#include "sim/schedule/latency/analytical_estimator.h"

#include <algorithm>

#include "model/cost/collective.h"
#include "sim/schedule/latency/kernel_model.h"
#include "sim/schedule/latency/tshirt_estimator.h"

namespace spillway {
namespace {

constexpr double kLaunchOfCollective = 5;  ///< microseconds

/// XLA's ring: the channels that links and devices allow, each at the low-latency protocol's rate,
/// of which some is lost; every byte goes round almost twice.
double ring_all_reduce(const Collective& collective, std::string_view capability) {
  const bool is_blackwell = capability.starts_with("10.") || capability.starts_with("12.");
  const double gb_per_lane = is_blackwell ? 40 : 20;
  const double most_of_channel = is_blackwell ? 36.7 : 20;
  constexpr double kLinks = 18, kKept = 0.92, kMostChannels = 32;
  const auto n = static_cast<double>(collective.group.size);
  const double channels = std::min(kLinks, std::max(n, kMostChannels));
  const double bandwidth = channels * std::min(gb_per_lane, most_of_channel) * kKept * 1e3;
  const double share_of_bandwidth = n / (2 * (n - 1));
  return static_cast<double>(collective.tensor.value()) / (bandwidth * share_of_bandwidth);
}

}  // namespace

double AnalyticalEstimator::node_cost(const Program& program, InstructionId instruction) const {
  if (is_collective_start_or_done(program, instruction)) return 1;
  constexpr double kNanosecondsOfMicrosecond = 1000;
  return believed_kernel(program, instruction, profile_.device).time / kNanosecondsOfMicrosecond;
}

double AnalyticalEstimator::latency(const Program& program, ComputationId computation,
                                    InstructionIndex from, InstructionIndex to) const {
  if (!is_async_pair(program, computation, from, to)) return 1;
  const std::int64_t devices = program.device_count();
  const auto collective =
      find_collective(program, {computation, from}, {devices, devices, devices, ""});
  if (!collective || collective->kind != CollectiveKind::kAllReduce || collective->group.size < 2)
    return kLaunchOfCollective;
  return kLaunchOfCollective + ring_all_reduce(*collective, profile_.device.compute_capability);
}

}  // namespace spillway
