// Writes estimates into a profile and keeps the report's line of each. Left out: how anything is
// estimated.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/fit.h"
#include "calibration/fit/robust.h"

namespace spillway::calibration {

/// What a fit says of one figure.
struct Estimate {
  double value = 0;
  std::optional<Range> range{};
  int samples = 0;
  double median_error = 0;  ///< relative, of the fit at its samples
  double worst_error = 0;
  std::vector<Outlier> outliers{};
  std::string how;  ///< goes into the source: "queued copies of 4 KiB to 1 GiB"
  std::string doubt{};
};

/// A figure or the reason why there is none.
struct Outcome {
  std::optional<Estimate> estimate{};
  std::string refusal{};  ///< what the samples lack; empty with an estimate, or without samples
  int samples = 0;
};

/// The median of values and its interval by resampling them.
Estimate median_estimate(const std::vector<double>& values, const FitOptions& options);

class FigureSheet {
 public:
  /// `who` took the samples: "spillway-probe on NVIDIA H200, 2026-11-30".
  FigureSheet(std::string who, Fit& fit) : who_(std::move(who)), fit_(fit) {}

  /// Sets the figure unless the outcome is a refusal; with neither, it is reported as kept.
  template <typename Q>
  void set(std::string_view key, Figure<Q>& figure, const Outcome& outcome);
  template <typename Q>
  void set(std::string_view key, std::optional<Figure<Q>>& figure, const Outcome& outcome);
  /// A figure that profiles do not have; nothing without samples.
  template <typename Q>
  void beside(std::string_view key, const Outcome& outcome);
  /// A line of the report about something that is set elsewhere.
  void add(FittedFigure figure) { fit_.figures.push_back(std::move(figure)); }
  /// "who: how; 240 samples, 55.3 to 55.5 GB/s, within 0.4 % in the median".
  Origin origin_of(const Estimate& estimate, const std::string& interval) const;

 private:
  std::string who_;
  Fit& fit_;
};

/// As the report shows them: four digits, the interval rounded outwards.
double rounded(double value);
double rounded_down(double value);

}  // namespace spillway::calibration
