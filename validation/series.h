// Rows of one machine and precision, or of one paper, belong together: some of them say how much
// slower the machine was than its profile, the others are predicted with that.
#pragma once

#include <string>
#include <vector>

#include "validation/grade.h"
#include "validation/measures.h"

namespace spillway {

struct GradedRow {
  const PublishedRow* row = nullptr;
  std::vector<Measured> measured;  ///< one for each combination of what is open
  std::string problem;             ///< why there is none
  std::optional<Band> band;
  std::optional<Band> calibrated;  ///< of a series with a row that calibrates
  std::optional<double> naive;     ///< FLOPs at one rate, the same rows deciding which
  Verdict verdict = Verdict::kNotComputed;
};

/// What the rows of a series that calibrate say.
struct SeriesFit {
  std::size_t rows = 0;  ///< that calibrate
  double factor = 1;     ///< on times, one over it on rates
  /// With three rows or more, steps all of them: on kernels and on what is exposed beside them.
  std::optional<std::pair<double, double>> parts;
  double seconds_per_flop = 0;  ///< of the naive model, a pipeline's bubble apart
};
/// factor: geometric mean of published / computed time. parts: least squares of relative residuals,
/// none below 0.
SeriesFit fit_series(const std::vector<const GradedRow*>& calibrating);
double calibrated_value(const SeriesFit& fit, const Measured& measured);

/// Bands, calibration and verdicts of all rows.
std::vector<GradedRow> grade_rows(const std::vector<PublishedRow>& rows, Measures& measures);

/// Mean of the errors' sizes over the rows that are predicted.
struct SeriesErrors {
  std::string series;
  std::size_t calibrating = 0, predicted = 0;
  double raw = 0, calibrated = 0;
  std::optional<double> naive;
};
std::vector<SeriesErrors> series_errors(const std::vector<GradedRow>& rows);

}  // namespace spillway
