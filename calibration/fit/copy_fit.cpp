#include "calibration/fit/copy_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "model/base/format.h"
#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

constexpr Bytes kSmall{std::int64_t{64} << 10};        // below, drivers send data with the command
constexpr Bytes kSustained{std::int64_t{256} << 20};   // what a stack's slice is about
constexpr Bytes kLargeEnough{std::int64_t{16} << 20};  // a rate of one size, start-up unknown
constexpr double kWidestRate = 0.1;                    // half of an interval, of its value
constexpr double kWidestLatency = 0.5;                 // likewise
constexpr double kNarrowLatency = 0.5e-6;   // seconds: such a half interval is never too wide
constexpr double kLeastShare = 0.1;         // of the smallest size's time that the start-up must be
constexpr double kOutlier = 0.03;           // smaller residuals are no news
constexpr double kOutlierWeight = 1.0 / 3;  // of Huber: three times beyond its bound

/// The samples of one size and regime, and their median.
struct SizeGroup {
  CopyRegime regime = CopyRegime::kQueued;
  std::optional<Bytes> bytes;  // empty: a rate whose size nobody said, taken as large
  std::vector<double> seconds_per_byte;
  double resolution = 0;  // of the rate, relative
  SourceRef where;
};

std::vector<SizeGroup> group_by_size(const std::vector<const CopySample*>& samples) {
  std::map<std::pair<CopyRegime, std::int64_t>, SizeGroup> groups;
  for (const CopySample* sample : samples) {
    const std::int64_t size = sample->bytes ? sample->bytes->value() : 0;
    SizeGroup& group = groups[{sample->regime, size}];
    if (group.seconds_per_byte.empty()) group.where = sample->where;
    group.regime = sample->regime;
    group.bytes = sample->bytes;
    group.seconds_per_byte.push_back(1 / sample->rate.value());
    group.resolution = std::max(group.resolution, ratio(sample->resolution, sample->rate) / 2);
  }
  std::vector<SizeGroup> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

std::string size_range(const std::vector<SizeGroup>& groups) {
  std::optional<Bytes> least, most;
  for (const SizeGroup& group : groups)
    if (group.bytes) {
      least = least ? std::min(*least, *group.bytes) : *group.bytes;
      most = most ? std::max(*most, *group.bytes) : *group.bytes;
    }
  if (!least) return "copies of a size that is not said";
  if (*least == *most) return "copies of " + format_bytes(*least);
  return fmt::format("copies of {} to {}", format_bytes(*least), format_bytes(*most));
}

/// The columns: a start-up for each regime that has samples of a known size, the bytes, and the
/// bytes beyond a hinge.
class Design {
 public:
  Design(std::vector<SizeGroup> groups, std::optional<Bytes> hinge)
      : groups_(std::move(groups)), hinge_(hinge) {
    std::size_t start = 0;
    for (const SizeGroup& group : groups_) {
      if (group.bytes && !column_of(group.regime)) regimes_.push_back(group.regime);
      starts_.push_back(start);
      start += group.seconds_per_byte.size();
    }
  }

  const std::vector<SizeGroup>& groups() const { return groups_; }
  std::optional<Bytes> hinge() const { return hinge_; }
  std::optional<std::size_t> column_of(CopyRegime regime) const {
    const auto found = std::ranges::find(regimes_, regime);
    if (found == regimes_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - regimes_.begin());
  }
  std::size_t byte_column() const { return regimes_.size(); }

  /// The median sample of each group, a row each; times are per byte.
  LinearSamples rows() const {
    LinearSamples linear = no_rows();
    for (const SizeGroup& group : groups_)
      linear.add(row_of(group), median(group.seconds_per_byte), group.resolution);
    return linear;
  }
  /// The same of samples drawn anew: a group's as often as it has samples, one group behind the
  /// other. Samples are numbered through all groups.
  LinearSamples rows_drawn(std::span<const std::size_t> samples) const {
    LinearSamples linear = no_rows();
    while (!samples.empty()) {
      const auto next = std::ranges::upper_bound(starts_, samples.front());
      const SizeGroup& group = groups_[static_cast<std::size_t>(next - starts_.begin()) - 1];
      std::vector<double> times;
      for (const std::size_t sample : samples.first(group.seconds_per_byte.size()))
        times.push_back(group.seconds_per_byte[sample - *(next - 1)]);
      samples = samples.subspan(times.size());
      linear.add(row_of(group), median(std::move(times)), group.resolution);
    }
    return linear;
  }
  /// The numbers of each group's samples.
  std::vector<std::vector<std::size_t>> numbered() const {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      groups.emplace_back(groups_[g].seconds_per_byte.size());
      std::iota(groups.back().begin(), groups.back().end(), starts_[g]);
    }
    return groups;
  }
  std::vector<double> row_of(const SizeGroup& group) const {
    std::vector<double> row(regimes_.size() + (hinge_ ? 2 : 1), 0.0);
    row[byte_column()] = 1;
    if (!group.bytes) return row;
    const auto bytes = static_cast<double>(group.bytes->value());
    row[*column_of(group.regime)] = 1 / bytes;
    if (hinge_) row.back() = std::max(0.0, 1 - ratio(*hinge_, *group.bytes));
    return row;
  }

 private:
  LinearSamples no_rows() const {
    LinearSamples linear;
    linear.parameters = static_cast<int>(regimes_.size()) + (hinge_ ? 2 : 1);
    return linear;
  }

  std::vector<SizeGroup> groups_;
  std::vector<std::size_t> starts_;  // number of each group's first sample
  std::optional<Bytes> hinge_;
  std::vector<CopyRegime> regimes_;
};

RobustFit fit_all(const Design& design) { return fit_robustly(design.rows()); }

double weighted_squares(const RobustFit& fit) {
  double sum = 0;
  for (std::size_t i = 0; i < fit.residual.size(); ++i)
    sum += fit.weight[i] * fit.residual[i] * fit.residual[i];
  return std::max(sum, 1e-12);
}

/// A hinge must pay for itself twice over (three parameters of the Bayesian criterion for one), and
/// make a difference of 3 %: a wiggle of the curve is no second slope.
Design choose_design(const std::vector<SizeGroup>& groups) {
  Design best(groups, std::nullopt);
  const RobustFit plain = fit_all(best);
  if (!plain.determined) return best;
  std::set<Bytes> sizes;
  for (const SizeGroup& group : groups)
    if (group.bytes) sizes.insert(*group.bytes);
  double least = weighted_squares(plain);
  const auto n = static_cast<double>(groups.size());
  const double must_fall = std::exp(-3 * std::log(n) / n);
  least *= must_fall;
  for (const Bytes size : sizes) {
    const auto above = std::distance(sizes.upper_bound(size), sizes.end());
    if (size < Bytes(4 << 20) || above < 2) continue;
    Design hinged(groups, size);
    const RobustFit fit = fit_all(hinged);
    if (!fit.determined || fit.beta.back() < 0.03 * fit.beta[hinged.byte_column()]) continue;
    if (const double squares = weighted_squares(fit); squares < least) {
      least = squares;
      best = std::move(hinged);
    }
  }
  return best;
}

/// Seconds a byte of copies as large as those that matter.
double sustained(const Design& design, const std::vector<double>& beta) {
  const double base = beta[design.byte_column()];
  return design.hinge() && *design.hinge() < kSustained ? base + beta.back() : base;
}

struct Ranges {
  std::optional<Range> rate;
  std::vector<std::optional<Range>> latency;  // by column
};

Ranges ranges_of(const Design& design, const FitOptions& options) {
  const std::size_t columns = design.byte_column();
  Ranges ranges{std::nullopt, std::vector<std::optional<Range>>(columns)};
  const auto estimate =
      [&](std::span<const std::size_t> drawn) -> std::optional<std::vector<double>> {
    const RobustFit fit = fit_robustly(design.rows_drawn(drawn));
    if (!fit.determined) return std::nullopt;
    std::vector<double> found(fit.beta.begin(),
                              fit.beta.begin() + static_cast<std::ptrdiff_t>(columns));
    found.push_back(1 / sustained(design, fit.beta));
    return found;
  };
  const auto found =
      bootstrap(design.numbered(), estimate, options.draws, options.confidence, options.seed);
  if (!found) return ranges;
  ranges.rate = found->back();
  for (std::size_t j = 0; j < columns; ++j) ranges.latency[j] = (*found)[j];
  return ranges;
}

Estimate describe(const Design& design, const RobustFit& fit) {
  Estimate estimate;
  std::vector<double> off;
  for (std::size_t i = 0; i < fit.residual.size(); ++i) {
    const SizeGroup& group = design.groups()[i];
    estimate.samples += static_cast<int>(group.seconds_per_byte.size());
    const double fitted = median(group.seconds_per_byte) * (1 + fit.residual[i]);
    for (const double seconds : group.seconds_per_byte)
      off.push_back(std::abs(fitted / seconds - 1));
    if (fit.weight[i] < kOutlierWeight && std::abs(fit.residual[i]) > kOutlier)
      estimate.outliers.push_back(
          {fit.residual[i],
           fmt::format("{} at {}", group.bytes ? format_bytes(*group.bytes) : "a copy",
                       to_units_text(BytesPerSecond(rounded(1 / median(group.seconds_per_byte))))),
           group.where});
  }
  estimate.median_error = median(off);
  estimate.worst_error = std::ranges::max(off);
  estimate.how = size_range(design.groups());
  return estimate;
}

Outcome latency_outcome(const Design& design, const RobustFit& fit, CopyRegime regime,
                        const Ranges& ranges) {
  Outcome outcome;
  std::optional<Bytes> smallest;
  for (const SizeGroup& group : design.groups())
    if (group.regime == regime && group.bytes) {
      outcome.samples += static_cast<int>(group.seconds_per_byte.size());
      smallest = smallest ? std::min(*smallest, *group.bytes) : *group.bytes;
    }
  const auto column = design.column_of(regime);
  if (!column || !smallest) return outcome;
  const double value = fit.beta[*column];
  const double share =
      value / (value + static_cast<double>(smallest->value()) * fit.beta[design.byte_column()]);
  const std::optional<Range>& range = ranges.latency[*column];
  if (share < kLeastShare) {
    outcome.refusal = fmt::format(
        "even of the smallest copies, {}, the start-up is only {:.0f} %: measure smaller ones",
        format_bytes(*smallest), share * 100);
    return outcome;
  }
  if (range && (range->high - range->low) / 2 > std::max(kNarrowLatency, kWidestLatency * value)) {
    outcome.refusal = fmt::format("lies between {} and {}: too wide to be of use",
                                  to_units_text(Seconds(rounded(range->low))),
                                  to_units_text(Seconds(rounded(range->high))));
    return outcome;
  }
  Estimate estimate = describe(design, fit);
  estimate.value = value;
  estimate.range = range;
  estimate.samples = outcome.samples;
  outcome.estimate = std::move(estimate);
  return outcome;
}

Outcome rate_outcome(const Design& design, const RobustFit& fit, const Ranges& ranges) {
  Estimate estimate = describe(design, fit);
  estimate.value = 1 / sustained(design, fit.beta);
  estimate.range = ranges.rate;
  Outcome outcome;
  outcome.samples = estimate.samples;
  Bytes largest(0);
  for (const SizeGroup& group : design.groups())
    largest = std::max(largest, group.bytes.value_or(kLargeEnough));
  if (!std::isfinite(estimate.value) || largest < kSmall * 16) {
    outcome.refusal = fmt::format("the largest copies are of {}: measure some of {} and more",
                                  format_bytes(largest), format_bytes(kLargeEnough));
  } else if (ranges.rate &&
             (ranges.rate->high - ranges.rate->low) / 2 > kWidestRate * estimate.value) {
    outcome.refusal = fmt::format("lies between {} and {}: the samples disagree",
                                  to_units_text(BytesPerSecond(rounded(ranges.rate->low))),
                                  to_units_text(BytesPerSecond(rounded(ranges.rate->high))));
  } else {
    outcome.estimate = std::move(estimate);
  }
  return outcome;
}

/// One size of each regime, or sizes nobody said: their median rate, start-up and all.
Outcome rate_alone(const std::vector<SizeGroup>& groups, const FitOptions& options) {
  std::vector<double> rates;
  Bytes smallest = kLargeEnough;
  for (const SizeGroup& group : groups) {
    smallest = std::min(smallest, group.bytes.value_or(kLargeEnough));
    for (const double seconds : group.seconds_per_byte) rates.push_back(1 / seconds);
  }
  Outcome outcome;
  outcome.samples = static_cast<int>(rates.size());
  if (smallest < kLargeEnough) {
    outcome.refusal = fmt::format(
        "copies of {} alone do not tell the rate from the start-up: measure other sizes",
        format_bytes(smallest));
    return outcome;
  }
  outcome.estimate = median_estimate(rates, options);
  outcome.estimate->how = size_range(groups);
  outcome.estimate->doubt = "the start-up is not taken off";
  return outcome;
}

std::vector<CopyCurve> curves_of(const Design& design, const RobustFit& fit,
                                 CopyDirection direction) {
  std::map<CopyRegime, CopyCurve> curves;
  for (const SizeGroup& group : design.groups()) {
    if (!group.bytes) continue;
    const std::vector<double> row = design.row_of(group);
    const double fitted = std::inner_product(row.begin(), row.end(), fit.beta.begin(), 0.0);
    CopyCurve& curve = curves[group.regime];
    curve.direction = direction;
    curve.regime = group.regime;
    curve.points.push_back({*group.bytes, BytesPerSecond(1 / median(group.seconds_per_byte)),
                            BytesPerSecond(1 / fitted), BytesPerSecond(0)});
  }
  std::vector<CopyCurve> list;
  for (auto& [regime, curve] : curves) list.push_back(std::move(curve));
  return list;
}

/// Copies below 64 KiB by themselves: a start-up, and what they take beside it.
void fit_small(const std::vector<SizeGroup>& groups, const FitOptions& options,
               DirectionFit& result) {
  const Design design(groups, std::nullopt);
  const RobustFit fit = fit_all(design);
  if (!fit.determined || design.groups().size() < 3) return;
  result.small_latency =
      latency_outcome(design, fit, CopyRegime::kQueued, ranges_of(design, options));
}

void warn_of_hinge(const Design& design, const RobustFit& fit, CopyDirection direction,
                   DirectionFit& result) {
  if (!design.hinge()) return;
  const double before = fit.beta[design.byte_column()];
  result.warnings.push_back(
      {"second-slope",
       fmt::format("{}: {} up to {}, then {} for what is beyond", name_of(direction),
                   to_units_text(BytesPerSecond(rounded(1 / before))),
                   format_bytes(*design.hinge()),
                   to_units_text(BytesPerSecond(rounded(1 / (before + fit.beta.back()))))),
       design.groups().front().where});
}

}  // namespace

bool is_plain(const CopySample& sample) {
  const bool pinned = sample.pages == HostPages::kPinned ||
                      sample.pages == HostPages::kRegistered || sample.pages == HostPages::kUnknown;
  return sample.by == CopiedBy::kCopyEngine && pinned && sample.memory != HostMemory::kFar &&
         sample.beside == Beside::kNothing && !sample.rows && sample.rate > BytesPerSecond(0);
}

DirectionFit fit_direction(const std::vector<CopySample>& samples, CopyDirection direction,
                           const FitOptions& options) {
  std::vector<const CopySample*> large, small;
  for (const CopySample& sample : samples)
    if (is_plain(sample) && sample.direction == direction && !sample.both_ways &&
        sample.gpus_at_once == 1)
      (sample.bytes && *sample.bytes < kSmall ? small : large).push_back(&sample);
  DirectionFit result;
  if (small.size() > 2) fit_small(group_by_size(small), options, result);
  if (large.empty()) {
    if (!small.empty())
      result.rate = {std::nullopt, "all copies are below 64 KiB", static_cast<int>(small.size())};
    return result;
  }
  const std::vector<SizeGroup> groups = group_by_size(large);
  const Design design = choose_design(groups);
  const RobustFit fit = fit_all(design);
  if (!fit.determined) {
    result.rate = rate_alone(groups, options);
    const char* why = "all copies are of one size: measure others, down to 64 KiB";
    for (const SizeGroup& group : groups) {
      const auto n = static_cast<int>(group.seconds_per_byte.size());
      if (group.regime == CopyRegime::kQueued) result.queued_latency = {std::nullopt, why, n};
      if (group.regime == CopyRegime::kIsolated) result.isolated_latency = {std::nullopt, why, n};
    }
    return result;
  }
  const Ranges ranges = ranges_of(design, options);
  result.rate = rate_outcome(design, fit, ranges);
  result.queued_latency = latency_outcome(design, fit, CopyRegime::kQueued, ranges);
  result.isolated_latency = latency_outcome(design, fit, CopyRegime::kIsolated, ranges);
  result.curves = curves_of(design, fit, direction);
  warn_of_hinge(design, fit, direction, result);
  return result;
}

}  // namespace spillway::calibration
