#include "calibration/fit/figure_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "model/hardware/units_text.h"

namespace spillway::calibration {
namespace {

constexpr int kDigits = 4;

/// The unit in the last of the digits that a value is shown with.
double last_digit_of(double value) {
  return value == 0 ? 1 : std::pow(10.0, std::floor(std::log10(std::abs(value))) - (kDigits - 1));
}

/// Without the binary noise of multiplying by a power of ten: the number as its decimals read.
double to_digits(double value) { return std::stod(fmt::format("{:.{}g}", value, kDigits)); }

Range outwards(const Range& range) {
  const auto up = [](double v) {
    const double r = to_digits(v);
    return r < v ? to_digits(r + last_digit_of(v)) : r;
  };
  return {rounded_down(range.low), up(range.high)};
}

/// Profiles know no factor and no rate of nothing; a duration may be nothing.
template <typename Q>
Q quantity(double value) {
  if constexpr (std::is_same_v<Q, Factor>) value = std::max(value, 1e-6);
  if constexpr (std::is_same_v<Q, BytesPerSecond>) value = std::max(value, 1.0);
  return Q(static_cast<typename Q::rep>(value));
}

FittedFigure line_of(std::string_view key, const Outcome& outcome) {
  FittedFigure line;
  line.key = key;
  line.samples = outcome.samples;
  if (!outcome.refusal.empty()) {
    line.state = FigureState::kRefused;
    line.why = outcome.refusal;
  } else if (outcome.estimate) {
    line.state = FigureState::kFitted;
    line.samples = outcome.estimate->samples;
    line.median_error = outcome.estimate->median_error;
    line.worst_error = outcome.estimate->worst_error;
    line.outliers = outcome.estimate->outliers;
    line.why = outcome.estimate->doubt;
  }
  return line;
}

/// The value that an estimate comes to, and its texts in the report's line.
template <typename Q>
Q to_value(const Estimate& estimate, FittedFigure& line) {
  const Q value = quantity<Q>(rounded(estimate.value));
  line.after = to_units_text(value);
  if (estimate.range) {
    const Range range = outwards(*estimate.range);
    line.low = to_units_text(std::min(value, quantity<Q>(range.low)));
    line.high = to_units_text(std::max(value, quantity<Q>(range.high)));
  }
  return value;
}

std::string interval_of(const FittedFigure& line) {
  return line.low.empty() ? "" : line.low + " to " + line.high;
}

}  // namespace

double rounded(double value) { return to_digits(value); }

double rounded_down(double value) {
  const double nearest = to_digits(value);
  return nearest > value ? to_digits(nearest - last_digit_of(value)) : nearest;
}

Estimate median_estimate(const std::vector<double>& values, const FitOptions& options) {
  Estimate estimate;
  estimate.value = median(values);
  estimate.samples = static_cast<int>(values.size());
  std::vector<double> off;
  for (const double value : values) off.push_back(std::abs(value / estimate.value - 1));
  estimate.median_error = median(off);
  estimate.worst_error = std::ranges::max(off);
  std::vector<std::size_t> all(values.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto median_of = [&](std::span<const std::size_t> drawn) {
    std::vector<double> some;
    for (const std::size_t i : drawn) some.push_back(values[i]);
    return std::optional(std::vector{median(std::move(some))});
  };
  const auto ranges = bootstrap({all}, median_of, options.draws, options.confidence, options.seed);
  if (ranges) estimate.range = ranges->front();
  return estimate;
}

Origin FigureSheet::origin_of(const Estimate& estimate, const std::string& interval) const {
  std::string source = fmt::format("{}: {}; {} sample{}", who_, estimate.how, estimate.samples,
                                   estimate.samples == 1 ? "" : "s");
  if (!interval.empty()) source += ", " + interval;
  if (estimate.samples > 1)
    source += fmt::format(", within {:.1f} % in the median", estimate.median_error * 100);
  return {OriginKind::kMeasured, std::move(source)};
}

template <typename Q>
void FigureSheet::set(std::string_view key, Figure<Q>& figure, const Outcome& outcome) {
  FittedFigure line = line_of(key, outcome);
  line.before = line.after = to_units_text(figure.value);
  if (line.state == FigureState::kFitted) {
    const auto before = static_cast<double>(figure.value.value());
    figure.value = to_value<Q>(*outcome.estimate, line);
    figure.origin = origin_of(*outcome.estimate, interval_of(line));
    line.change = before == 0 ? 0 : static_cast<double>(figure.value.value()) / before - 1;
  }
  fit_.figures.push_back(std::move(line));
}

template <typename Q>
void FigureSheet::set(std::string_view key, std::optional<Figure<Q>>& figure,
                      const Outcome& outcome) {
  if (figure) return set(key, *figure, outcome);
  FittedFigure line = line_of(key, outcome);
  if (line.state == FigureState::kKept) return;
  if (line.state == FigureState::kFitted) {
    figure.emplace().value = to_value<Q>(*outcome.estimate, line);
    figure->origin = origin_of(*outcome.estimate, interval_of(line));
  }
  fit_.figures.push_back(std::move(line));
}

template <typename Q>
void FigureSheet::beside(std::string_view key, const Outcome& outcome) {
  FittedFigure line = line_of(key, outcome);
  if (line.state == FigureState::kKept) return;
  if (line.state == FigureState::kFitted) to_value<Q>(*outcome.estimate, line);
  fit_.figures.push_back(std::move(line));
}

template void FigureSheet::set(std::string_view, Figure<BytesPerSecond>&, const Outcome&);
template void FigureSheet::set(std::string_view, Figure<Seconds>&, const Outcome&);
template void FigureSheet::set(std::string_view, Figure<Factor>&, const Outcome&);
template void FigureSheet::set(std::string_view, Figure<Count>&, const Outcome&);
template void FigureSheet::set(std::string_view, std::optional<Figure<BytesPerSecond>>&,
                               const Outcome&);
template void FigureSheet::set(std::string_view, std::optional<Figure<Factor>>&, const Outcome&);
template void FigureSheet::beside<BytesPerSecond>(std::string_view, const Outcome&);
template void FigureSheet::beside<Seconds>(std::string_view, const Outcome&);
template void FigureSheet::beside<Factor>(std::string_view, const Outcome&);

}  // namespace spillway::calibration
