#include "calibration/fit/gemm_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "calibration/fit/gemm_surface.h"
#include "model/cost/gemm_time.h"
#include "model/hardware/profile_fields.h"
#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

constexpr std::size_t kEnoughShapes = 12;  // for five parameters
constexpr double kArithmetic = 0.7;  // of a product's time, from where on it tells about power
constexpr double kOutlier = 0.1, kOutlierWeight = 1.0 / 3;

using Shape = std::tuple<Count, Count, Count, Count>;
Shape shape_of(const GemmSample& s) { return {s.batch, s.m, s.n, s.k}; }

std::string shape_text(const GemmSample& s) {
  return fmt::format("{}{} x {} x {} in {}",
                     s.batch > Count(1) ? fmt::format("{} of ", s.batch.value()) : "", s.m.value(),
                     s.n.value(), s.k.value(), to_units_text(Seconds(rounded(s.time.value()))));
}

/// One sample a shape, of the median time: repetitions of a shape say little of other shapes.
std::vector<GemmSample> medians_of(const std::vector<const GemmSample*>& samples) {
  std::map<Shape, std::vector<const GemmSample*>> by_shape;
  for (const GemmSample* sample : samples) by_shape[shape_of(*sample)].push_back(sample);
  std::vector<GemmSample> medians;
  for (const auto& [shape, same] : by_shape) {
    std::vector<double> times;
    for (const GemmSample* sample : same) times.push_back(sample->time.value());
    medians.push_back(*same.front());
    medians.back().time = Seconds(median(std::move(times)));
  }
  return medians;
}

/// The samples of one type that may be used.
struct TypeSamples {
  std::string type;
  std::vector<const GemmSample*> brief, lasting;
  int zeros = 0;

  int usable() const { return static_cast<int>(brief.size() + lasting.size()); }
};

TypeSamples samples_of(const Measurements& measurements, std::string_view type) {
  TypeSamples found{std::string(type), {}, {}, 0};
  for (const GemmSample& sample : measurements.gemms) {
    if (sample.type != type || sample.time <= Seconds(0)) continue;
    if (sample.operands == Operands::kZeros)
      ++found.zeros;
    else
      (sample.lasting ? found.lasting : found.brief).push_back(&sample);
  }
  return found;
}

Surface start_of(const HardwareProfile& profile, const std::string& type) {
  const GemmShape* shape = find_gemm_shape(profile.kernels, type);
  const double factor = gemm_factor(profile.kernels, type).value.value();
  if (shape == nullptr) return {factor, 5e-6, 1e-6, 0.5, 0.6};
  return {factor, shape->overhead.value(), shape->depth.value(), shape->operands.value(),
          shape->result.value()};
}

Estimate describe(const SurfaceFit& surface, const std::vector<const GemmSample*>& samples,
                  std::size_t repetitions) {
  Estimate estimate;
  estimate.samples = static_cast<int>(repetitions);
  std::vector<double> off;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    off.push_back(std::abs(surface.residual[i]));
    if (surface.weight[i] < kOutlierWeight && off.back() > kOutlier)
      estimate.outliers.push_back(
          {surface.residual[i], shape_text(*samples[i]), samples[i]->where});
  }
  estimate.median_error = median(off);
  estimate.worst_error = std::ranges::max(off);
  estimate.how = fmt::format("products of {} shapes, random operands", samples.size());
  return estimate;
}

/// How much longer a product takes for a factor that is longer by one: its share of arithmetic.
double arithmetic_share(const GemmSample& sample, Surface surface, const HardwareProfile& machine) {
  const Seconds before = surface_time(sample, surface, machine);
  surface[0] *= 1.01;
  return (ratio(surface_time(sample, surface, machine), before) - 1) / 0.01;
}

/// Times under lasting load over times of short runs, shape by shape, where arithmetic decides.
Outcome power_of(const TypeSamples& samples, const Surface& surface, const HardwareProfile& machine,
                 const FitOptions& options) {
  std::map<Shape, std::pair<std::vector<double>, std::vector<double>>> times;
  for (const GemmSample* s : samples.brief) times[shape_of(*s)].first.push_back(s->time.value());
  for (const GemmSample* s : samples.lasting) {
    if (arithmetic_share(*s, surface, machine) < kArithmetic) continue;
    times[shape_of(*s)].second.push_back(s->time.value());
  }
  std::vector<double> ratios;
  for (const auto& [shape, both] : times)
    if (!both.first.empty() && !both.second.empty())
      ratios.push_back(median(both.second) / median(both.first));
  Outcome outcome;
  if (samples.brief.empty() || samples.lasting.empty()) return outcome;
  outcome.samples = static_cast<int>(samples.lasting.size());
  if (ratios.empty()) {
    outcome.refusal = "no shape that arithmetic decides ran both briefly and lastingly";
    return outcome;
  }
  outcome.estimate = median_estimate(ratios, options);
  outcome.estimate->value = std::max(outcome.estimate->value, 1.0);
  outcome.estimate->how = "lasting load against short runs, shape by shape";
  return outcome;
}

/// The report's lines of a shape's four figures, and the shape with its origin.
GemmShape shape_from(const SurfaceFit& surface, const Surface& before, const std::string& type,
                     Estimate estimate, FigureSheet& sheet) {
  const auto text = [](std::size_t i, double v) {
    return i <= 2 ? to_units_text(Seconds(rounded(v))) : to_units_text(Factor(rounded(v)));
  };
  std::string intervals;
  for (std::size_t i = 1; i < surface.value.size(); ++i) {
    FittedFigure line;
    line.key = fmt::format("kernels.gemm_shape.{}.{}", type, kSurfaceNames[i]);
    line.before = text(i, before[i]);
    line.after = text(i, surface.value[i]);
    line.samples = estimate.samples;
    line.median_error = estimate.median_error;
    line.worst_error = estimate.worst_error;
    line.state = surface.determined[i] ? FigureState::kFitted : FigureState::kRefused;
    if (surface.range[i]) {
      line.low = text(i, surface.range[i]->low);
      line.high = text(i, surface.range[i]->high);
      intervals += fmt::format("{}{} {} to {}", intervals.empty() ? "" : ", ", kSurfaceNames[i],
                               line.low, line.high);
    }
    if (surface.determined[i]) {
      line.change = surface.value[i] / before[i] - 1;
    } else {
      line.why = "no shape depends on it enough: it stays";
    }
    sheet.add(std::move(line));
  }
  GemmShape shape{Seconds(rounded(surface.value[1])), Seconds(rounded(surface.value[2])),
                  Factor(rounded(surface.value[3])), Factor(rounded(surface.value[4])),
                  sheet.origin_of(estimate, intervals)};
  return shape;
}

void set_factor(const std::string& key, const std::string& type, FigureTable<Factor>& table,
                const Outcome& outcome, FigureSheet& sheet) {
  std::optional<Figure<Factor>> figure;
  if (const auto found = table.find(type); found != table.end()) figure = found->second;
  sheet.set(key, figure, outcome);
  if (figure) table[type] = *figure;
}

void fit_type(const Measurements& measurements, const std::string& type, const FitOptions& options,
              FigureSheet& sheet, Fit& fit) {
  const TypeSamples samples = samples_of(measurements, type);
  if (samples.usable() + samples.zeros == 0) return;
  KernelCosts& kernels = fit.profile.kernels;
  const std::string key = "kernels.gemm." + type;
  const auto refuse = [&](std::string why) {
    set_factor(key, type, kernels.gemm, {std::nullopt, std::move(why), samples.usable()}, sheet);
  };
  if (samples.usable() == 0)
    return refuse("all products are of zeros, which run 13 % and more too fast");
  if (find_figure(fit.profile.device.matrix_peak, type) == nullptr)
    return refuse("the base profile has no matrix_peak for this type");
  const auto& used = samples.brief.empty() ? samples.lasting : samples.brief;
  const std::vector<GemmSample> medians = medians_of(used);
  std::vector<const GemmSample*> shapes;
  for (const GemmSample& shape : medians) shapes.push_back(&shape);
  const Surface start = start_of(fit.profile, type);
  const SurfaceFit surface = fit_surface(shapes, start, fit.profile, shapes.size() < kEnoughShapes);
  if (!surface.determined[0])
    return refuse("memory and start-up decide these shapes: measure larger ones");
  Estimate estimate = describe(surface, shapes, used.size());
  if (shapes.size() >= kEnoughShapes)
    kernels.gemm_shape[type] = shape_from(surface, start, type, estimate, sheet);
  estimate.value = surface.value[0];
  estimate.range = surface.range[0];
  if (samples.brief.empty()) {
    const double power = gemm_power(kernels, type);
    estimate.value /= power;
    if (estimate.range)
      *estimate.range = {estimate.range->low / power, estimate.range->high / power};
    estimate.how += fmt::format(", lasting load, less the factor of {} for power", power);
  }
  set_factor(key, type, kernels.gemm, {std::move(estimate), "", 0}, sheet);
  set_factor("kernels.gemm_power." + type, type, kernels.gemm_power,
             power_of(samples, surface.value, fit.profile, options), sheet);
}

}  // namespace

void fit_gemms(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet,
               Fit& fit) {
  for (const std::string_view type : kMatrixTypes)
    fit_type(measurements, std::string(type), options, sheet, fit);
}

}  // namespace spillway::calibration
