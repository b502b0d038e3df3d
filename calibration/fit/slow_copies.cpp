#include "calibration/fit/slow_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace spillway::calibration {

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

}  // namespace spillway::calibration
