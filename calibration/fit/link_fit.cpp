#include "calibration/fit/link_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "calibration/fit/copy_fit.h"
#include "calibration/fit/slow_copies.h"
#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

constexpr double kNotSlowed = 0.97;  // of the rate alone: the memory was not what bound

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
  const auto scaled = [&](const Figure<BytesPerSecond>& figure) {
    return BytesPerSecond(rounded(figure.value.value() * grown));
  };
  // Where the directions did not change alike, a share may be more than a direction carries alone.
  const BytesPerSecond in = link.host_to_device.value, out = link.device_to_host.value;
  const BytesPerSecond both =
      std::clamp(scaled(before.both_directions), std::max(in, out), in + out);
  link.both_directions = {both, origin};
  if (before.host_to_device_beside)
    link.host_to_device_beside = Figure<BytesPerSecond>{
        std::clamp(scaled(*before.host_to_device_beside), both - out, in), origin};
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
    // Separate runs differ by a little; what a direction carries alone is not exceeded.
    double& beside = in.estimate->value;
    beside = rounded(std::min(beside, link.host_to_device.value.value()));
    const double most = beside + link.device_to_host.value.value();
    sum.estimate->value = rounded_down(std::min(rounded(sum.estimate->value), most));
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

/// The faster of the base's rates that no samples replace.
BytesPerSecond fastest_kept(const HostLink& base, const Outcome& in, const Outcome& out) {
  BytesPerSecond fastest(0);
  if (!in.estimate) fastest = base.host_to_device.value;
  if (!out.estimate) fastest = std::max(fastest, base.device_to_host.value);
  return fastest;
}

/// What the wires carry, as the driver says it. Rates of the base, `kept`, may be another link's.
Outcome cap_of(const Measurements& measurements, BytesPerSecond kept, Fit& fit) {
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
  if (outcome.estimate && outcome.estimate->value < kept.value()) {
    outcome.refusal = fmt::format(
        "{} carries {}, and the base's {} cannot be on such a link: measure copies both ways",
        outcome.estimate->how, to_units_text(BytesPerSecond(rounded(outcome.estimate->value))),
        to_units_text(kept));
    fit.warnings.push_back({"other-link", outcome.refusal, {}});
    outcome.estimate.reset();
  }
  return outcome;
}

/// A measured rate above the wires' cap says that the cap is wrong, whoever stated it.
void raise_cap(const HostLink& before, HostLink& link, Fit& fit) {
  const BytesPerSecond fastest = std::max(link.host_to_device.value, link.device_to_host.value);
  if (fastest <= link.cap_per_direction.value) return;
  fit.warnings.push_back(
      {"above-cap",
       fmt::format("{} was measured, more than the cap of a direction, {}: the "
                   "cap is another link's; it is set to what was measured",
                   to_units_text(fastest), to_units_text(link.cap_per_direction.value)),
       {}});
  link.cap_per_direction = {fastest, {OriginKind::kInferred, "what copies reached"}};
  const auto line = std::ranges::find(fit.figures, "link.cap_per_direction", &FittedFigure::key);
  line->state = FigureState::kFitted;
  line->after = to_units_text(fastest);
  line->change = ratio(fastest, before.cap_per_direction.value) - 1;
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
  sheet.set("link.cap_per_direction", link.cap_per_direction,
            cap_of(measurements, fastest_kept(before, in.rate, out.rate), fit));
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
  raise_cap(before, link, fit);
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
