#include "sim/schedule/latency/analytical_estimator.h"

#include <algorithm>

#include "model/cost/collective.h"
#include "sim/schedule/latency/kernel_model.h"
#include "sim/schedule/latency/tshirt_estimator.h"

namespace spillway {
namespace {

constexpr double kLaunchOfCollective = 5;  ///< microseconds

/// XLA's ring, in microseconds: a channel for each NVLink, each at its lane's rate of which the
/// low-latency protocol loses some, up to what a channel can do. Every byte goes round almost
/// twice, and XLA counts the tensor as read and as written.
/// Source: gpu_collective_performance_model.cc, HandleAllReduce in gpu_hlo_cost_analysis.cc.
double ring_all_reduce(const Collective& collective, std::string_view capability) {
  const bool is_ampere = capability.starts_with("8.");
  const bool is_blackwell = capability.starts_with("10.") || capability.starts_with("12.");
  const double links = is_ampere ? 12 : 18;
  const double gb_of_lane = is_blackwell ? 40 : 20, gb_of_channel = is_ampere ? 20 : 36.7;
  constexpr double kKept = 0.92, kBytesOfMicrosecond = 1e3;  // of a GB/s
  const auto n = static_cast<double>(collective.group.size);
  const double bandwidth =
      links * std::min(gb_of_lane * kKept, gb_of_channel) * kBytesOfMicrosecond;
  const double share_of_bandwidth = n / (2 * (n - 1));
  return 2 * static_cast<double>(collective.tensor.value()) / (bandwidth * share_of_bandwidth);
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
