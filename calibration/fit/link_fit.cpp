#include "calibration/fit/link_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "calibration/fit/copy_fit.h"
#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

constexpr Bytes kLarge{std::int64_t{8} << 20};  // start-up is taken off, and is little
constexpr double kNotSlowed = 0.97;             // of the rate alone: the memory was not what bound

using Keep = std::function<bool(const CopySample&)>;

/// Rates of large copies, their start-up taken off.
std::vector<double> sustained_rates(const Measurements& measurements, Seconds latency,
                                    const Keep& keep) {
  std::vector<double> rates;
  for (const CopySample& sample : measurements.copies) {
    if (!keep(sample) || sample.rate <= BytesPerSecond(0)) continue;
    if (!sample.bytes) {
      rates.push_back(sample.rate.value());
    } else if (*sample.bytes >= kLarge) {
      const Seconds time = time_of(sample) - latency;
      if (time > Seconds(0))
        rates.push_back(static_cast<double>(sample.bytes->value()) / time.value());
    }
  }
  return rates;
}

Keep one_direction(CopyDirection direction, bool both_ways, bool alone) {
  return [=](const CopySample& sample) {
    return is_plain(sample) && sample.direction == direction && sample.both_ways == both_ways &&
           (sample.gpus_at_once == 1) == alone;
  };
}

/// Both directions, each measured beside the other: the median of each.
struct TwoWays {
  std::vector<double> in, out;

  int samples() const { return static_cast<int>(in.size() + out.size()); }
  Outcome missing(std::string_view what) const {
    if (in.empty() && out.empty()) return {};
    if (!in.empty() && !out.empty()) return {};
    return {std::nullopt,
            fmt::format("{}: only {} was measured, and its share of the sum is not known", what,
                        in.empty() ? "device to host" : "host to device"),
            samples()};
  }
};

TwoWays two_ways(const Measurements& measurements, Seconds latency, bool alone) {
  return {sustained_rates(measurements, latency,
                          one_direction(CopyDirection::kHostToDevice, true, alone)),
          sustained_rates(measurements, latency,
                          one_direction(CopyDirection::kDeviceToHost, true, alone))};
}

/// The sum of two medians; its interval resamples both.
Estimate sum_of_medians(const TwoWays& ways, double times, const FitOptions& options) {
  std::vector<double> values;
  std::vector<std::vector<std::size_t>> groups(2);
  for (const double rate : ways.in) groups[0].push_back(values.size()), values.push_back(rate);
  for (const double rate : ways.out) groups[1].push_back(values.size()), values.push_back(rate);
  const auto sum = [&](std::span<const std::size_t> drawn) {
    std::array<std::vector<double>, 2> rates;
    for (const std::size_t i : drawn) rates[i < ways.in.size() ? 0 : 1].push_back(values[i]);
    return std::optional(std::vector{times * (median(rates[0]) + median(rates[1]))});
  };
  std::vector<std::size_t> all = groups[0];
  all.insert(all.end(), groups[1].begin(), groups[1].end());
  Estimate estimate;
  estimate.value = sum(all)->front();
  estimate.samples = ways.samples();
  const Estimate in = median_estimate(ways.in, options), out = median_estimate(ways.out, options);
  estimate.median_error = std::max(in.median_error, out.median_error);
  estimate.worst_error = std::max(in.worst_error, out.worst_error);
  if (const auto range = bootstrap(groups, sum, options.draws, options.confidence, options.seed))
    estimate.range = range->front();
  return estimate;
}

/// Where both ways were not measured: the base's share of the sum of the directions, of the new
/// sum.
void carry_over(const HostLink& before, HostLink& link, Fit& fit) {
  const auto sum = [](const HostLink& l) {
    return l.host_to_device.value + l.device_to_host.value;
  };
  const double grown = ratio(sum(link), sum(before));
  if (grown == 1) return;
  const Origin origin{OriginKind::kInferred,
                      "the base profile's share of the sum of both directions, of their new sum"};
  link.both_directions = {BytesPerSecond(rounded(before.both_directions.value.value() * grown)),
                          origin};
  if (before.host_to_device_beside)
    link.host_to_device_beside = Figure<BytesPerSecond>{
        BytesPerSecond(rounded(before.host_to_device_beside->value.value() * grown)), origin};
  fit.warnings.push_back({"carried-over",
                          "both ways at once were not measured: link.both_directions is the base "
                          "profile's share of the new rates",
                          {}});
}

/// Both ways of one GPU, and what of that goes in.
void fit_both_directions(const Measurements& measurements, const FitOptions& options,
                         FigureSheet& sheet, const HostLink& before, Fit& fit) {
  HostLink& link = fit.profile.link;
  const TwoWays ways = two_ways(measurements, link.copy_latency.value, true);
  if (ways.in.empty() || ways.out.empty()) carry_over(before, link, fit);
  Outcome sum = ways.missing("both ways at once");
  Outcome in = sum;
  if (!ways.in.empty() && !ways.out.empty()) {
    sum.estimate = sum_of_medians(ways, 1, options);
    sum.estimate->how = "both ways at once, each beside the other";
    in.estimate = median_estimate(ways.in, options);
    in.estimate->how = "host to device beside device to host";
    // Separate runs differ by a little; two links' worth is not exceeded.
    const double most = link.host_to_device.value.value() + link.device_to_host.value.value();
    sum.estimate->value = std::min(sum.estimate->value, most);
    in.estimate->value = std::min(in.estimate->value, link.host_to_device.value.value());
  }
  sheet.set("link.both_directions", link.both_directions, sum);
  sheet.set("link.host_to_device_beside", link.host_to_device_beside, in);
}

/// What a CPU's memory gives all its GPUs, one way: only where it slows them.
Outcome shared_one_way(const Measurements& measurements, const FitOptions& options,
                       const HardwareProfile& profile, CopyDirection direction) {
  const bool is_in = direction == CopyDirection::kHostToDevice;
  const std::vector<double> rates = sustained_rates(measurements, profile.link.copy_latency.value,
                                                    one_direction(direction, false, false));
  if (rates.empty()) return {};
  Outcome outcome;
  outcome.samples = static_cast<int>(rates.size());
  const auto gpus = static_cast<double>(profile.host.gpus_per_cpu.value.value());
  std::vector<double> sums;
  for (const double rate : rates) sums.push_back(rate * gpus);
  Estimate estimate = median_estimate(sums, options);
  const double alone =
      (is_in ? profile.link.host_to_device : profile.link.device_to_host).value.value();
  if (estimate.value >= kNotSlowed * alone * gpus) {
    outcome.refusal = fmt::format("{} GPUs at once are not slowed: the memory gives {} or more",
                                  profile.host.gpus_per_cpu.value.value(),
                                  to_units_text(BytesPerSecond(rounded(estimate.value))));
    return outcome;
  }
  estimate.how = fmt::format("all GPUs of a CPU {} at once, {} of them",
                             is_in ? "host to device" : "device to host", gpus);
  outcome.estimate = std::move(estimate);
  return outcome;
}

Outcome shared_both_ways(const Measurements& measurements, const FitOptions& options,
                         const HardwareProfile& profile) {
  const TwoWays ways = two_ways(measurements, profile.link.copy_latency.value, false);
  Outcome outcome = ways.missing("all GPUs both ways");
  outcome.samples = ways.samples();
  if (ways.in.empty() || ways.out.empty()) return outcome;
  const auto gpus = static_cast<double>(profile.host.gpus_per_cpu.value.value());
  outcome.estimate = sum_of_medians(ways, gpus, options);
  outcome.estimate->how = fmt::format("all GPUs of a CPU both ways at once, {} of them", gpus);
  if (outcome.estimate->value >= kNotSlowed * gpus * profile.link.both_directions.value.value())
    outcome.estimate->doubt = "the GPUs were not slowed: a lower bound";
  return outcome;
}

/// A CPU with one GPU cannot be told from that GPU's link.
void fit_host_memory(const Measurements& measurements, const FitOptions& options,
                     FigureSheet& sheet, HardwareProfile& profile) {
  Host& host = profile.host;
  if (host.gpus_per_cpu.value == Count(1)) {
    const auto refuse = [](const char* of) {
      return fmt::format("one GPU a CPU: its memory cannot be told from link.{}", of);
    };
    const int n = two_ways(measurements, Seconds(0), true).samples();
    if (n > 0)
      sheet.set("host.memory_bandwidth", host.memory_bandwidth,
                {std::nullopt, refuse("both_directions"), n});
    return;
  }
  sheet.set("host.memory_bandwidth", host.memory_bandwidth,
            shared_both_ways(measurements, options, profile));
  sheet.set("host.memory_bandwidth_read", host.memory_bandwidth_read,
            shared_one_way(measurements, options, profile, CopyDirection::kHostToDevice));
  sheet.set("host.memory_bandwidth_write", host.memory_bandwidth_write,
            shared_one_way(measurements, options, profile, CopyDirection::kDeviceToHost));
}

Outcome cap_of(const Measurements& measurements) {
  Outcome outcome;
  for (const LinkCapSample& cap : measurements.link_caps) {
    ++outcome.samples;
    if (!cap.under_load) continue;
    if (outcome.estimate && outcome.estimate->value <= cap.cap.value()) continue;
    outcome.estimate = Estimate{};
    outcome.estimate->value = cap.cap.value();
    outcome.estimate->samples = 1;
    outcome.estimate->how = cap.text;
  }
  if (outcome.samples > 0 && !outcome.estimate)
    outcome.refusal = "read while the link was idle, when it runs below its speed";
  return outcome;
}

/// A measured rate above the wires' cap says that the cap is wrong, whoever stated it.
void raise_cap(HostLink& link, Fit& fit) {
  const BytesPerSecond fastest = std::max(link.host_to_device.value, link.device_to_host.value);
  if (fastest <= link.cap_per_direction.value) return;
  fit.warnings.push_back(
      {"above-cap",
       fmt::format("{} was measured, more than the cap of a direction, {}: the "
                   "cap is another link's; it is set to what was measured",
                   to_units_text(fastest), to_units_text(link.cap_per_direction.value)),
       {}});
  link.cap_per_direction = {fastest, {OriginKind::kInferred, "what copies reached"}};
}

/// Of both directions: start-ups are the engines', and profiles have one.
Outcome joint_latency(const Outcome& in, const Outcome& out) {
  if (!in.estimate) return out.estimate || out.samples > 0 ? out : in;
  if (!out.estimate) return in;
  Outcome outcome = in;
  Estimate& joint = *outcome.estimate;
  const Estimate& other = *out.estimate;
  joint.value = (joint.value + other.value) / 2;
  joint.samples += other.samples;
  joint.median_error = std::max(joint.median_error, other.median_error);
  joint.worst_error = std::max(joint.worst_error, other.worst_error);
  joint.outliers.clear();  // they are with the rates
  if (joint.range && other.range)
    joint.range = Range{std::min(joint.range->low, other.range->low),
                        std::max(joint.range->high, other.range->high)};
  outcome.samples = joint.samples;
  return outcome;
}

/// Rates by what makes copies slow, for contrast.
void report_slow_copies(const Measurements& measurements, const FitOptions& options,
                        FigureSheet& sheet) {
  struct Kind {
    const char* name;
    Keep keep;
  };
  const Kind kinds[] = {
      {"copy.pageable",
       [](const CopySample& s) { return s.pages == HostPages::kPageable && !s.rows; }},
      {"copy.far_memory",
       [](const CopySample& s) { return s.memory == HostMemory::kFar && !s.rows; }},
      {"copy.by_kernel", [](const CopySample& s) { return s.by == CopiedBy::kKernel && !s.rows; }},
  };
  for (const Kind& kind : kinds)
    for (const CopyDirection direction :
         {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
      const std::vector<double> rates =
          sustained_rates(measurements, Seconds(0), [&](const CopySample& s) {
            return kind.keep(s) && s.direction == direction && !s.both_ways &&
                   s.gpus_at_once == 1 && s.beside == Beside::kNothing;
          });
      if (rates.empty()) continue;
      sheet.beside<BytesPerSecond>(fmt::format("{}.{}", kind.name, name_of(direction)),
                                   {median_estimate(rates, options), "", 0});
    }
}

/// What a row costs beside its bytes: time = start-up + bytes / rate + rows x cost.
void report_rows(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet) {
  for (const CopyDirection direction :
       {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
    LinearSamples linear;
    linear.parameters = 2;
    std::vector<std::vector<std::size_t>> groups;
    std::map<Bytes, std::size_t> group_of;
    for (const CopySample& s : measurements.copies) {
      if (!s.rows || s.direction != direction || !s.bytes || *s.bytes < kLarge) continue;
      const auto bytes = static_cast<double>(s.bytes->value());
      linear.add(std::array{1.0, static_cast<double>(s.rows->count.value()) / bytes},
                 1 / s.rate.value());
      const auto [at, fresh] = group_of.try_emplace(s.rows->row, groups.size());
      if (fresh) groups.emplace_back();
      groups[at->second].push_back(linear.y.size() - 1);
    }
    if (linear.y.empty()) continue;
    const std::string key = fmt::format("copy.row.{}", name_of(direction));
    const auto samples = static_cast<int>(linear.y.size());
    const RobustFit fit = fit_robustly(linear);
    if (!fit.determined || group_of.size() < 2) {
      sheet.beside<Seconds>(
          key, {std::nullopt, "rows of one length do not tell rows from bytes", samples});
      continue;
    }
    Estimate estimate;
    estimate.value = fit.beta[1];
    estimate.samples = samples;
    std::vector<double> off;
    for (const double r : fit.residual) off.push_back(std::abs(r));
    estimate.median_error = median(off);
    estimate.worst_error = std::ranges::max(off);
    const auto again =
        [&](std::span<const std::size_t> drawn) -> std::optional<std::vector<double>> {
      LinearSamples some;
      some.parameters = 2;
      for (const std::size_t i : drawn) some.add(linear.row(i), linear.y[i]);
      const RobustFit refit = fit_robustly(some);
      if (!refit.determined) return std::nullopt;
      return std::vector{refit.beta[1]};
    };
    if (const auto range =
            bootstrap(groups, again, options.draws, options.confidence, options.seed))
      estimate.range = range->front();
    sheet.beside<Seconds>(key, {std::move(estimate), "", samples});
  }
}

/// The base profile's rate at the points of a curve.
void add_before(const HostLink& before, CopyCurve& curve) {
  const BytesPerSecond rate = curve.direction == CopyDirection::kHostToDevice
                                  ? before.host_to_device.value
                                  : before.device_to_host.value;
  for (CopyCurve::Point& point : curve.points) {
    const Seconds time = point.bytes / rate + before.copy_latency.value;
    point.before = BytesPerSecond(static_cast<double>(point.bytes.value()) / time.value());
  }
}

}  // namespace

void fit_link(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet,
              Fit& fit) {
  HostLink& link = fit.profile.link;
  const HostLink before = link;
  DirectionFit in = fit_direction(measurements.copies, CopyDirection::kHostToDevice, options);
  DirectionFit out = fit_direction(measurements.copies, CopyDirection::kDeviceToHost, options);
  sheet.set("link.cap_per_direction", link.cap_per_direction, cap_of(measurements));
  sheet.set("link.host_to_device", link.host_to_device, in.rate);
  sheet.set("link.device_to_host", link.device_to_host, out.rate);
  Outcome latency = joint_latency(in.queued_latency, out.queued_latency);
  if (latency.samples == 0 && in.isolated_latency.samples + out.isolated_latency.samples > 0)
    latency = {
        std::nullopt,
        "all copies are isolated, with the host's part in their start-up: measure queued ones",
        in.isolated_latency.samples + out.isolated_latency.samples};
  fit_both_directions(measurements, options, sheet, before, fit);
  sheet.set("link.copy_latency", link.copy_latency, latency);
  raise_cap(link, fit);
  fit_host_memory(measurements, options, sheet, fit.profile);
  sheet.beside<Seconds>("copy.isolated_latency.host_to_device", in.isolated_latency);
  sheet.beside<Seconds>("copy.isolated_latency.device_to_host", out.isolated_latency);
  sheet.beside<Seconds>("copy.small_latency.host_to_device", in.small_latency);
  sheet.beside<Seconds>("copy.small_latency.device_to_host", out.small_latency);
  report_slow_copies(measurements, options, sheet);
  report_rows(measurements, options, sheet);
  for (DirectionFit* direction : {&in, &out}) {
    for (CopyCurve& curve : direction->curves) {
      add_before(before, curve);
      fit.curves.push_back(std::move(curve));
    }
    fit.warnings.insert(fit.warnings.end(), direction->warnings.begin(), direction->warnings.end());
  }
}

}  // namespace spillway::calibration
