#include "validation/series.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/spec/config_keys.h"

namespace spillway {
namespace {

double published_of(const GradedRow& row) { return parse_number(row.row->published).value_or(0); }

/// Of a row that calibrates: the first combination.
const Measured& first(const GradedRow& row) { return row.measured.front(); }

/// Least squares of (a kernels + b exposed) bubble / published = 1.
std::pair<double, double> fit_parts(const std::vector<const GradedRow*>& rows) {
  double kk = 0, ke = 0, ee = 0, k = 0, e = 0;
  for (const GradedRow* row : rows) {
    const double scale = first(*row).bubble / published_of(*row);
    const double x = first(*row).kernels * scale, y = first(*row).exposed * scale;
    kk += x * x, ke += x * y, ee += y * y, k += x, e += y;
  }
  const double determinant = kk * ee - ke * ke;
  if (determinant > 0) {
    const double a = (k * ee - e * ke) / determinant, b = (e * kk - k * ke) / determinant;
    if (a >= 0 && b >= 0) return {a, b};
  }
  return k / kk > e / std::max(ee, 1e-30) ? std::pair(k / kk, 0.0) : std::pair(0.0, e / ee);
}

GradedRow measured_row(const PublishedRow& row, Measures& measures) {
  GradedRow graded;
  graded.row = &row;
  std::vector<double> values;
  for (const Settings& combination : combinations(row.open)) {
    Settings common, other;
    for (const auto& [key, value] : combination) {
      const bool of_other = key.starts_with("against ");
      (of_other ? other[key.substr(8)] : common[key]) = value;
    }
    const Settings step = merged(row.step, common);
    std::optional<Settings> against;
    if (row.against) against = merged(merged(step, *row.against), other);
    const Result<Measured> value = measures.measure(row.measure, step, against);
    if (!value.ok()) {
      graded.problem = value.error().text;
      return graded;
    }
    graded.measured.push_back(*value);
    values.push_back(value->value);
  }
  graded.band = band_of(values);
  graded.verdict = grade(row, *graded.band);
  return graded;
}

void calibrate(GradedRow& row, const SeriesFit& fit) {
  std::vector<double> values;
  for (const Measured& one : row.measured) values.push_back(calibrated_value(fit, one));
  row.calibrated = band_of(values);
  if (row.row->measure == "step" && fit.seconds_per_flop > 0)
    row.naive = fit.seconds_per_flop * first(row).flops * first(row).bubble;
  row.verdict = row.row->calibrates ? Verdict::kCalibrates : grade(*row.row, *row.calibrated);
}

}  // namespace

SeriesFit fit_series(const std::vector<const GradedRow*>& calibrating) {
  SeriesFit fit;
  fit.rows = calibrating.size();
  if (calibrating.empty()) return fit;
  double logs = 0, naive = 0;
  bool steps = true;
  for (const GradedRow* row : calibrating) {
    const double slower = std::log(published_of(*row) / first(*row).value);
    logs += first(*row).is_rate ? -slower : slower;
    steps = steps && row->row->measure == "step" && first(*row).flops > 0;
    if (steps) naive += std::log(published_of(*row) / (first(*row).flops * first(*row).bubble));
  }
  const auto count = static_cast<double>(calibrating.size());
  fit.factor = std::exp(logs / count);
  if (steps) fit.seconds_per_flop = std::exp(naive / count);
  if (steps && calibrating.size() >= 3) fit.parts = fit_parts(calibrating);
  return fit;
}

double calibrated_value(const SeriesFit& fit, const Measured& measured) {
  if (measured.is_rate) return measured.value / fit.factor;
  if (!fit.parts) return measured.value * fit.factor;
  return (fit.parts->first * measured.kernels + fit.parts->second * measured.exposed) *
         measured.bubble;
}

std::vector<GradedRow> grade_rows(const std::vector<PublishedRow>& rows, Measures& measures) {
  std::vector<GradedRow> graded;
  graded.reserve(rows.size());
  for (const PublishedRow& row : rows) graded.push_back(measured_row(row, measures));
  std::map<std::string, std::vector<const GradedRow*>> calibrating;
  for (const GradedRow& row : graded)
    if (row.row->calibrates && row.band) calibrating[row.row->series].push_back(&row);
  for (const auto& [series, members] : calibrating) {
    const SeriesFit fit = fit_series(members);
    for (GradedRow& row : graded)
      if (row.band && row.row->series == series) calibrate(row, fit);
  }
  return graded;
}

std::vector<SeriesErrors> series_errors(const std::vector<GradedRow>& rows) {
  std::vector<SeriesErrors> all;
  for (const GradedRow& row : rows) {
    if (!row.calibrated) continue;
    auto found = std::ranges::find(all, row.row->series, &SeriesErrors::series);
    if (found == all.end()) {
      all.push_back({});
      all.back().series = row.row->series;
      found = all.end() - 1;
    }
    if (row.row->calibrates) {
      ++found->calibrating;
      continue;
    }
    ++found->predicted;
    found->raw += std::abs(error_of(*row.row, *row.band));
    found->calibrated += std::abs(error_of(*row.row, *row.calibrated));
    if (row.naive)
      found->naive =
          found->naive.value_or(0) + std::abs(error_of(*row.row, {*row.naive, *row.naive}));
  }
  for (SeriesErrors& errors : all) {
    const auto count = static_cast<double>(std::max<std::size_t>(errors.predicted, 1));
    errors.raw /= count;
    errors.calibrated /= count;
    if (errors.naive) *errors.naive /= count;
  }
  return all;
}

}  // namespace spillway
