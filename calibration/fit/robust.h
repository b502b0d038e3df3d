// Robust linear fits and their intervals. Times of copies and kernels spread by a few percent of
// themselves, and some are several times as long as they should be (another job, a clock that
// fell): least squares on times follows those few. Left out: what the columns mean (copy_fit.h and
// its neighbours).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace spillway::calibration {

/// y_i = sum over j of x_ij beta_j, for beta_j >= 0 and y_i > 0.
struct LinearSamples {
  int parameters = 0;
  std::vector<double> x;  ///< row by row
  std::vector<double> y;
  std::vector<double> tolerance;  ///< how far y_i may be off by rounding, of itself; may be empty

  std::span<const double> row(std::size_t i) const {
    const auto n = static_cast<std::size_t>(parameters);
    return std::span(x).subspan(i * n, n);
  }
  void add(std::span<const double> row, double value, double rounding = 0);
};

struct RobustFit {
  bool determined = false;  ///< else the samples do not tell the columns apart
  std::vector<double> beta;
  std::vector<double> residual;  ///< (fitted - y) / y
  std::vector<double> weight;    ///< Huber's: 1 within 1.345 standard deviations, less beyond
};

/// Iteratively reweighted least squares on relative residuals, Huber's loss with k = 1.345 x
/// MAD / 0.6745. A rounded sample counts by 1 / (1 + (tolerance / 1 %)^2). A parameter that would
/// be negative is 0.
RobustFit fit_robustly(const LinearSamples& samples);

double median(std::vector<double> values);  ///< of at least one

struct Range {
  double low, high;
};

/// Percentile intervals of what `estimate` makes of samples drawn anew: whole groups (samples of
/// one size) where there are at least four, samples within each group otherwise. `estimate` gives
/// nothing for draws that determine nothing; empty when more than a fifth of them did not, or when
/// there is nothing to draw from.
using Estimator =
    std::function<std::optional<std::vector<double>>(std::span<const std::size_t> samples)>;
std::optional<std::vector<Range>> bootstrap(const std::vector<std::vector<std::size_t>>& groups,
                                            const Estimator& estimate, int draws, double confidence,
                                            std::uint64_t seed);

}  // namespace spillway::calibration
