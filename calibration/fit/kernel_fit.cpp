#include "calibration/fit/kernel_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

Outcome median_outcome(const std::vector<double>& values, const FitOptions& options,
                       std::string how) {
  if (values.empty()) return {};
  Outcome outcome{median_estimate(values, options), "", static_cast<int>(values.size())};
  outcome.estimate->how = std::move(how);
  return outcome;
}

Outcome launch_outcome(const Measurements& measurements, LaunchCost cost, const FitOptions& options,
                       std::string how) {
  std::vector<double> times;
  for (const LaunchSample& sample : measurements.launches)
    if (sample.cost == cost) times.push_back(sample.time.value());
  return median_outcome(times, options, std::move(how));
}

/// Samples of a class that are beyond the caches, and how many are not.
struct ClassSamples {
  std::vector<const TrafficSample*> far;
  int near = 0;
};
ClassSamples class_samples(const Measurements& measurements, TrafficKernel kernel,
                           const HardwareProfile& profile) {
  ClassSamples found;
  for (const TrafficSample& sample : measurements.traffic) {
    if (sample.kernel != kernel || sample.time <= Seconds(0)) continue;
    if (sample.traffic >= profile.device.l2_capacity.value * 4)
      found.far.push_back(&sample);
    else
      ++found.near;
  }
  return found;
}

/// time = floor + factor x bytes / HBM bandwidth; with one size the profile's floor is taken off.
Outcome factor_outcome(const Measurements& measurements, TrafficKernel kernel,
                       const FitOptions& options, const HardwareProfile& profile) {
  const ClassSamples samples = class_samples(measurements, kernel, profile);
  Outcome outcome;
  outcome.samples = static_cast<int>(samples.far.size()) + samples.near;
  if (outcome.samples == 0) return outcome;
  if (samples.far.empty()) {
    outcome.refusal = "all samples fit into the caches: measure more than four times the L2";
    return outcome;
  }
  LinearSamples linear;
  linear.parameters = 2;
  std::vector<std::vector<std::size_t>> groups;
  std::map<Bytes, std::size_t> group_of;
  for (const TrafficSample* s : samples.far) {
    const double roofline = (s->traffic / profile.device.hbm_bandwidth.value).value();
    linear.add(std::array{1 / roofline, 1.0}, s->time.value() / roofline);
    const auto [at, fresh] = group_of.try_emplace(s->traffic, groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(linear.y.size() - 1);
  }
  const bool sizes_differ = groups.size() > 1;
  const double floor = profile.kernels.launch_floor.value.value();
  const auto estimate_of =
      [&](std::span<const std::size_t> drawn) -> std::optional<std::vector<double>> {
    LinearSamples some;
    some.parameters = sizes_differ ? 2 : 1;
    for (const std::size_t i : drawn) {
      const auto row = linear.row(i);
      if (sizes_differ) some.add(row, linear.y[i]);
      const double rest = linear.y[i] - floor * row[0];
      if (!sizes_differ && rest > 0) some.add(std::array{1.0}, rest);
    }
    const RobustFit fit = fit_robustly(some);
    if (!fit.determined) return std::nullopt;
    std::vector<double> result{fit.beta.back()};
    for (const double r : fit.residual) result.push_back(std::abs(r));
    return result;
  };
  std::vector<std::size_t> all(linear.y.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto found = estimate_of(all);
  if (!found || found->size() < 2) {
    outcome.refusal = "the samples disagree";
    return outcome;
  }
  Estimate estimate;
  estimate.value = found->front();
  estimate.samples = static_cast<int>(all.size());
  const std::vector<double> off(found->begin() + 1, found->end());
  estimate.median_error = median(off);
  estimate.worst_error = std::ranges::max(off);
  const auto factor_of = [&](std::span<const std::size_t> drawn) {
    auto again = estimate_of(drawn);
    if (again) again->resize(1);
    return again;
  };
  if (const auto range =
          bootstrap(groups, factor_of, options.draws, options.confidence, options.seed))
    estimate.range = range->front();
  estimate.how = fmt::format("kernels that move {} sizes beyond the caches", groups.size());
  outcome.estimate = std::move(estimate);
  return outcome;
}

/// Bytes a second of kernels that only read or only write.
Outcome rate_outcome(const Measurements& measurements, TrafficKernel kernel,
                     const FitOptions& options, const HardwareProfile& profile) {
  std::vector<double> rates;
  for (const TrafficSample* s : class_samples(measurements, kernel, profile).far)
    rates.push_back(static_cast<double>(s->traffic.value()) / s->time.value());
  return median_outcome(rates, options, "kernels beyond the caches");
}

std::string pair_name(const InterferenceSample& sample) {
  const char* kernel =
      sample.kernel == Beside::kComputeBoundKernel ? "compute_kernel" : "memory_kernel";
  const char* copies = sample.host_to_device && sample.device_to_host ? "both_ways"
                       : sample.host_to_device                        ? "host_to_device"
                                                                      : "device_to_host";
  return fmt::format("{}.{}{}", kernel, copies, sample.by == CopiedBy::kKernel ? ".by_kernel" : "");
}

/// The simulator charges a copy its own bytes.
void warn_of_traffic(const Estimate& traffic, Fit& fit) {
  if (traffic.range->low <= 1.25 && traffic.range->high >= 0.8) return;
  fit.warnings.push_back(
      {"hbm-traffic",
       fmt::format("copies take {:.2f} times their bytes of the memory's bandwidth; simulations "
                   "count them once",
                   traffic.value),
       {}});
}

}  // namespace

void fit_kernels(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet,
                 Fit& fit) {
  const HardwareProfile& profile = fit.profile;
  KernelCosts& kernels = fit.profile.kernels;
  sheet.set("kernels.launch_floor", kernels.launch_floor,
            launch_outcome(measurements, LaunchCost::kFloor, options, "kernels that do nothing"));
  sheet.set("kernels.gap", kernels.gap,
            launch_outcome(measurements, LaunchCost::kGap, options,
                           "from one queued kernel's end to the next one's start"));
  const auto set = [&](const char* key, Figure<Factor>& figure, TrafficKernel kernel) {
    sheet.set(key, figure, factor_outcome(measurements, kernel, options, profile));
  };
  set("kernels.elementwise", kernels.elementwise, TrafficKernel::kElementwise);
  set("kernels.row_reduce", kernels.row_reduce, TrafficKernel::kRowReduce);
  set("kernels.column_reduce", kernels.column_reduce, TrafficKernel::kColumnReduce);
  set("kernels.transpose", kernels.transpose, TrafficKernel::kTranspose);
  set("kernels.copy", kernels.copy, TrafficKernel::kCopy);
  sheet.beside<Seconds>("host.enqueue", launch_outcome(measurements, LaunchCost::kEnqueue, options,
                                                       "the host's part of a launch"));
  sheet.beside<BytesPerSecond>("hbm.read",
                               rate_outcome(measurements, TrafficKernel::kRead, options, profile));
  sheet.beside<BytesPerSecond>("hbm.write",
                               rate_outcome(measurements, TrafficKernel::kWrite, options, profile));
}

/// A kernel that moves K alone moves K / s beside copies at rate R, which therefore take K (1 -
/// 1/s) of the memory: 1 times R if a copied byte costs what a byte of the kernel does.
void fit_interference(const Measurements& measurements, const FitOptions& options,
                      FigureSheet& sheet, Fit& fit) {
  std::vector<double> traffic;
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> slow_downs;
  for (const InterferenceSample& s : measurements.interference) {
    auto& [kernel, copy] = slow_downs[pair_name(s)];
    kernel.push_back(s.kernel_slowdown.value());
    copy.push_back(s.copy_slowdown.value());
    if (s.kernel == Beside::kMemoryBoundKernel && s.by == CopiedBy::kCopyEngine &&
        s.copy_rate > BytesPerSecond(0) && s.kernel_traffic > BytesPerSecond(0))
      traffic.push_back(ratio(s.kernel_traffic, s.copy_rate) * (1 - 1 / s.kernel_slowdown.value()));
  }
  Outcome outcome = median_outcome(traffic, options,
                                   "what a memory-bound kernel loses to copies, of what they move");
  if (outcome.estimate) {
    // A slow-down that drowns in the spread of kernel times would pass for any figure.
    const auto& range = outcome.estimate->range;
    if (!range || range->high - range->low > std::max(1.0, outcome.estimate->value)) {
      outcome.refusal = "the slow-down is no larger than the spread of the times: measure more";
      outcome.estimate.reset();
    } else {
      outcome.estimate->value = std::max(outcome.estimate->value, 0.0);
      warn_of_traffic(*outcome.estimate, fit);
    }
  }
  sheet.beside<Factor>("interference.hbm_traffic", outcome);
  for (const auto& [name, both] : slow_downs) {
    sheet.beside<Factor>("interference." + name + ".kernel",
                         median_outcome(both.first, options, "times as long as alone"));
    sheet.beside<Factor>("interference." + name + ".copy",
                         median_outcome(both.second, options, "times as long as alone"));
  }
}

}  // namespace spillway::calibration
