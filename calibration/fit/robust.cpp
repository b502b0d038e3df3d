#include "calibration/fit/robust.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>

#include "model/base/check.h"

namespace spillway::calibration {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kHuber = 1.345;  // 95 % as efficient as least squares on normal errors
constexpr double kMadOfNormal = 0.6745;
constexpr double kUsualScatter = 0.01;  // that a rounded sample is compared with
constexpr double kLeastScale = 1e-9;    // of residuals that are rounding alone
constexpr double kLeastPivot = 1e-7;    // of scaled columns; below it they are one another's sum

/// Rows divided by y, so that a residual is relative, and columns by their length, so that pivots
/// compare.
struct Scaled {
  MatrixXd x;
  VectorXd length;  // of the columns before
  VectorXd prior;   // weights that no residual changes
};

Scaled scale(const LinearSamples& samples) {
  const auto n = static_cast<Eigen::Index>(samples.y.size());
  Scaled scaled{MatrixXd(n, samples.parameters), VectorXd(samples.parameters), VectorXd::Ones(n)};
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    check(samples.y[at] > 0, "a sample to fit is not positive");
    for (Eigen::Index j = 0; j < samples.parameters; ++j)
      scaled.x(i, j) = samples.row(at)[static_cast<std::size_t>(j)] / samples.y[at];
    if (!samples.tolerance.empty())
      scaled.prior(i) = 1 / (1 + std::pow(samples.tolerance[at] / kUsualScatter, 2));
  }
  for (Eigen::Index j = 0; j < samples.parameters; ++j) {
    scaled.length(j) = scaled.x.col(j).norm();
    if (scaled.length(j) > 0) scaled.x.col(j) /= scaled.length(j);
  }
  return scaled;
}

/// Weighted least squares for x beta = 1 over the columns in use; empty when they are dependent.
std::optional<VectorXd> solve(const MatrixXd& x, const VectorXd& weight,
                              const std::vector<Eigen::Index>& used) {
  const VectorXd root = weight.cwiseSqrt();
  MatrixXd a(x.rows(), static_cast<Eigen::Index>(used.size()));
  for (std::size_t j = 0; j < used.size(); ++j)
    a.col(static_cast<Eigen::Index>(j)) = x.col(used[j]).cwiseProduct(root);
  Eigen::ColPivHouseholderQR<MatrixXd> qr(a);
  qr.setThreshold(kLeastPivot);
  if (qr.rank() < a.cols()) return std::nullopt;
  const VectorXd solved = qr.solve(root);
  VectorXd beta = VectorXd::Zero(x.cols());
  for (std::size_t j = 0; j < used.size(); ++j)
    beta(used[j]) = solved(static_cast<Eigen::Index>(j));
  return beta;
}

/// The same for beta >= 0: the most negative parameter becomes 0 until none is.
std::optional<VectorXd> solve_positive(const MatrixXd& x, const VectorXd& weight) {
  std::vector<Eigen::Index> used(static_cast<std::size_t>(x.cols()));
  for (std::size_t j = 0; j < used.size(); ++j) used[j] = static_cast<Eigen::Index>(j);
  while (true) {
    std::optional<VectorXd> beta = solve(x, weight, used);
    if (!beta) return beta;
    const auto worst = std::ranges::min_element(
        used, [&](Eigen::Index a, Eigen::Index b) { return (*beta)(a) < (*beta)(b); });
    if (worst == used.end() || (*beta)(*worst) >= 0) return beta;
    used.erase(worst);
    if (used.empty()) return VectorXd::Zero(x.cols());
  }
}

double spread_of(const VectorXd& residual) {
  std::vector<double> sizes(static_cast<std::size_t>(residual.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = std::abs(residual(static_cast<Eigen::Index>(i)));
  return std::max(median(std::move(sizes)) / kMadOfNormal, kLeastScale);
}

std::vector<double> to_vector(const VectorXd& from) {
  return {from.data(), from.data() + from.size()};
}

}  // namespace

void LinearSamples::add(std::span<const double> row, double value, double rounding) {
  check(row.size() == static_cast<std::size_t>(parameters), "a row of another length");
  x.insert(x.end(), row.begin(), row.end());
  y.push_back(value);
  tolerance.push_back(rounding);
}

RobustFit fit_robustly(const LinearSamples& samples) {
  RobustFit fit;
  const auto n = static_cast<Eigen::Index>(samples.y.size());
  if (n < samples.parameters || samples.parameters == 0) return fit;
  const Scaled scaled = scale(samples);
  VectorXd huber = VectorXd::Ones(n);
  std::optional<VectorXd> beta = solve_positive(scaled.x, scaled.prior);
  if (!beta) return fit;
  VectorXd residual;
  constexpr int kMostRounds = 100;
  for (int round = 0; round < kMostRounds; ++round) {
    residual = scaled.x * *beta - VectorXd::Ones(n);
    const double bound = kHuber * spread_of(residual);
    for (Eigen::Index i = 0; i < n; ++i)
      huber(i) = std::min(1.0, bound / std::max(std::abs(residual(i)), bound * 1e-3));
    std::optional<VectorXd> next = solve_positive(scaled.x, huber.cwiseProduct(scaled.prior));
    if (!next) return fit;
    const double moved = (*next - *beta).norm() / std::max(next->norm(), 1e-300);
    beta = std::move(next);
    if (moved < 1e-10) break;
  }
  residual = scaled.x * *beta - VectorXd::Ones(n);
  fit.determined = true;
  fit.residual = to_vector(residual);
  fit.weight = to_vector(huber);
  for (Eigen::Index j = 0; j < samples.parameters; ++j)
    if (scaled.length(j) > 0) (*beta)(j) /= scaled.length(j);
  fit.beta = to_vector(*beta);
  return fit;
}

double median(std::vector<double> values) {
  check(!values.empty(), "the median of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

namespace {

/// std::uniform_int_distribution draws differently from library to library.
std::size_t draw(std::mt19937_64& random, std::size_t below) { return random() % below; }

std::vector<std::size_t> resample(const std::vector<std::vector<std::size_t>>& groups,
                                  bool whole_groups, std::mt19937_64& random) {
  std::vector<std::size_t> drawn;
  for (const std::vector<std::size_t>& own : groups) {
    const auto& from = whole_groups ? groups[draw(random, groups.size())] : own;
    for (const std::size_t sample : from)
      drawn.push_back(whole_groups ? sample : from[draw(random, from.size())]);
  }
  return drawn;
}

Range percentiles(std::vector<double> values, double confidence) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  return {at((1 - confidence) / 2), at((1 + confidence) / 2)};
}

}  // namespace

std::optional<std::vector<Range>> bootstrap(const std::vector<std::vector<std::size_t>>& groups,
                                            const Estimator& estimate, int draws, double confidence,
                                            std::uint64_t seed) {
  constexpr std::size_t kEnoughGroups = 4;
  const bool whole_groups = groups.size() >= kEnoughGroups;
  const bool repeated = std::ranges::any_of(groups, [](const auto& g) { return g.size() > 2; });
  if (draws < 1 || groups.empty() || (!whole_groups && !repeated)) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<std::vector<double>> found;  // [parameter][draw]
  int failed = 0;
  for (int i = 0; i < draws; ++i) {
    const auto estimated = estimate(resample(groups, whole_groups, random));
    if (!estimated) {
      ++failed;
      continue;
    }
    found.resize(estimated->size());
    for (std::size_t j = 0; j < estimated->size(); ++j) found[j].push_back((*estimated)[j]);
  }
  if (failed * 5 > draws) return std::nullopt;
  std::vector<Range> ranges;
  for (std::vector<double>& values : found)
    ranges.push_back(percentiles(std::move(values), confidence));
  return ranges;
}

}  // namespace spillway::calibration
