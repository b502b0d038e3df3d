#include "calibration/fit/collective_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

constexpr Bytes kLeast{std::int64_t{64} << 10};  // below, other protocols
constexpr std::size_t kEnoughSizes = 5;          // for three parameters

double bus_share(Collective collective, Count gpus) {
  const auto n = static_cast<double>(gpus.value());
  if (collective == Collective::kPermute) return 1;
  return (collective == Collective::kAllReduce ? 2 : 1) * (n - 1) / n;
}

struct GroupFit {
  std::optional<CollectiveFit> fit{};
  int samples = 0;
  std::string refusal{};
  double median_error = 0, worst_error = 0;
};

/// Linear in latency, 1 / bandwidth and 2 sqrt(pipeline / bandwidth).
GroupFit fit_group(const std::vector<const CollectiveSample*>& samples) {
  GroupFit result;
  std::set<Bytes> sizes;
  LinearSamples linear;
  linear.parameters = 3;
  for (const CollectiveSample* s : samples) {
    if (s->bytes < kLeast || s->time <= Seconds(0) || s->gpus < Count(2)) continue;
    ++result.samples;
    sizes.insert(s->bytes);
    const double bus = static_cast<double>(s->bytes.value()) * bus_share(s->collective, s->gpus);
    linear.add(std::array{1 / bus, 1.0, 1 / std::sqrt(bus)}, s->time.value() / bus);
  }
  if (sizes.size() < kEnoughSizes) {
    result.refusal =
        fmt::format("{} sizes from 64 KiB up are too few for three parameters", sizes.size());
    return result;
  }
  const RobustFit fit = fit_robustly(linear);
  if (!fit.determined || fit.beta[1] <= 0) {
    result.refusal = "no size is large enough to show the bandwidth";
    return result;
  }
  CollectiveFit& found = result.fit.emplace();
  found.gpus = samples.front()->gpus;
  found.latency = Seconds(rounded(fit.beta[0]));
  found.bus_bandwidth = BytesPerSecond(rounded(1 / fit.beta[1]));
  found.pipeline = Seconds(rounded(std::pow(fit.beta[2] / 2, 2) / fit.beta[1]));
  std::vector<double> off;
  for (const double r : fit.residual) off.push_back(std::abs(r));
  result.median_error = median(off);
  result.worst_error = std::ranges::max(off);
  return result;
}

const CollectiveFit* find_size(const std::vector<CollectiveFit>& fits, Count gpus) {
  const auto found = std::ranges::find(fits, gpus, &CollectiveFit::gpus);
  return found == fits.end() ? nullptr : &*found;
}

/// What was fitted, and the base's groups of other sizes, which say so.
CollectiveCosts with_others_of(const CollectiveCosts& base, CollectiveCosts fitted) {
  std::string others;
  for (const CollectiveFit& before : base.fits) {
    if (find_size(fitted.fits, before.gpus) != nullptr) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", before.gpus.value());
    fitted.fits.push_back(before);
  }
  std::ranges::sort(fitted.fits, {}, &CollectiveFit::gpus);
  if (!others.empty())
    fitted.origin.source +=
        fmt::format("; groups of {} as in the base: {}", others, base.origin.source);
  return fitted;
}

void fit_one(const Measurements& measurements, Collective collective, const char* key,
             CollectiveCosts& costs, FigureSheet& sheet) {
  std::map<Count, std::vector<const CollectiveSample*>> by_gpus;
  for (const CollectiveSample& s : measurements.collectives)
    if (s.collective == collective) by_gpus[s.gpus].push_back(&s);
  if (by_gpus.empty()) return;
  std::vector<CollectiveFit> fits;
  Estimate all;
  for (const auto& [gpus, samples] : by_gpus) {
    FittedFigure line;
    line.key = fmt::format("fabric.scale_up.{}.{}_gpus", key, gpus.value());
    GroupFit group = collective == Collective::kPermute
                         ? GroupFit{{},
                                    static_cast<int>(samples.size()),
                                    "permutes change their number of channels, which is not fitted"}
                         : fit_group(samples);
    line.samples = group.samples;
    line.state = group.fit ? FigureState::kFitted : FigureState::kRefused;
    line.why = group.refusal;
    const CollectiveFit* const before = find_size(costs.fits, gpus);
    if (before != nullptr) line.before = line.after = to_units_text(before->bus_bandwidth);
    if (group.fit) {
      line.after = to_units_text(group.fit->bus_bandwidth);
      if (before != nullptr)
        line.change = ratio(group.fit->bus_bandwidth, before->bus_bandwidth) - 1;
      line.median_error = group.median_error;
      line.worst_error = group.worst_error;
      all.samples += group.samples;
      all.median_error = std::max(all.median_error, group.median_error);
      fits.push_back(*group.fit);
    }
    sheet.add(std::move(line));
  }
  if (fits.empty()) return;
  all.how = "sizes from 64 KiB up";
  costs = with_others_of(costs, {sheet.origin_of(all, ""), std::move(fits)});
}

}  // namespace

void fit_collectives(const Measurements& measurements, const FitOptions&, FigureSheet& sheet,
                     Fit& fit) {
  ScaleUp& fabric = fit.profile.scale_up;
  fit_one(measurements, Collective::kAllGather, "all_gather", fabric.all_gather, sheet);
  fit_one(measurements, Collective::kReduceScatter, "reduce_scatter", fabric.reduce_scatter, sheet);
  fit_one(measurements, Collective::kAllReduce, "all_reduce", fabric.all_reduce, sheet);
  fit_one(measurements, Collective::kAllToAll, "all_to_all", fabric.all_to_all, sheet);
  fit_one(measurements, Collective::kPermute, "collective_permute", fabric.collective_permute,
          sheet);
}

}  // namespace spillway::calibration
