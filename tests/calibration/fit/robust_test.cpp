#include "calibration/fit/robust.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "tests/calibration/synthetic.h"

namespace spillway::calibration {
namespace {

using testing::Noise;
using testing::off;

/// y = 3 + 2 x at x = 1 .. n.
LinearSamples line(int n) {
  LinearSamples samples;
  samples.parameters = 2;
  for (int x = 1; x <= n; ++x) samples.add(std::array{1.0, double(x)}, 3.0 + 2 * x);
  return samples;
}

TEST_CASE("exact samples give exact parameters") {
  const RobustFit fit = fit_robustly(line(10));
  REQUIRE(fit.determined);
  CHECK(fit.beta[0] == doctest::Approx(3));
  CHECK(fit.beta[1] == doctest::Approx(2));
  for (const double r : fit.residual) CHECK(std::abs(r) < 1e-9);
}

TEST_CASE("an outlier neither moves the fit nor goes unseen") {
  LinearSamples samples = line(20);
  samples.y[4] *= 4;
  samples.y[17] *= 3;
  const RobustFit fit = fit_robustly(samples);
  REQUIRE(fit.determined);
  CHECK(off(fit.beta[0], 3) < 0.001);
  CHECK(off(fit.beta[1], 2) < 0.001);
  CHECK(fit.weight[4] < 0.01);
  CHECK(off(fit.residual[4], 0.25 - 1) < 0.01);
}

TEST_CASE("what cannot be told apart is not determined") {
  struct Row {
    const char* name;
    int parameters;
    std::vector<std::array<double, 2>> x;
  };
  const Row rows[] = {{"fewer samples than parameters", 2, {{1, 1}}},
                      {"one size", 2, {{1, 5}, {1, 5}, {1, 5}}},
                      {"an empty column", 2, {{1, 0}, {1, 0}}}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    LinearSamples samples;
    samples.parameters = row.parameters;
    for (const auto& x : row.x) samples.add(x, 1.0);
    CHECK(!fit_robustly(samples).determined);
  }
}

TEST_CASE("no parameter is negative") {
  LinearSamples samples;
  samples.parameters = 2;
  for (int x = 1; x <= 10; ++x) samples.add(std::array{1.0, double(x)}, 2.0 * x - 0.5);
  const RobustFit fit = fit_robustly(samples);
  REQUIRE(fit.determined);
  CHECK(fit.beta[0] == 0);
  CHECK(fit.beta[1] > 1.5);
}

TEST_CASE("a rounded sample counts for less than an exact one") {
  LinearSamples samples;
  samples.parameters = 1;
  samples.add(std::array{1.0}, 1.0);
  samples.add(std::array{1.0}, 1.1, 0.1);
  const RobustFit fit = fit_robustly(samples);
  REQUIRE(fit.determined);
  CHECK(fit.beta[0] < 1.01);
}

TEST_CASE("medians") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("intervals hold the truth about as often as they say") {
  int held = 0;
  constexpr int kTrials = 60;
  for (int seed = 1; seed <= kTrials; ++seed) {
    Noise noise(static_cast<std::uint64_t>(seed), 0.05, 0);
    std::vector<double> values;
    for (int i = 0; i < 30; ++i) values.push_back(10 * std::exp(0.05 * noise.normal()));
    std::vector<std::size_t> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const auto ranges = bootstrap(
        {all},
        [&](std::span<const std::size_t> drawn) {
          std::vector<double> some;
          for (const std::size_t i : drawn) some.push_back(values[i]);
          return std::optional(std::vector{median(std::move(some))});
        },
        400, 0.95, 7);
    REQUIRE(ranges.has_value());
    held += ranges->front().low <= 10 && ranges->front().high >= 10 ? 1 : 0;
  }
  CHECK(held >= 52);  // 57 are to be expected
}

TEST_CASE("the same seed draws the same, and nothing is drawn from two samples") {
  const auto first = [](std::span<const std::size_t> drawn) {
    double sum = 0;
    for (const std::size_t i : drawn) sum += static_cast<double>(i);
    return std::optional(std::vector{sum});
  };
  const std::vector<std::vector<std::size_t>> groups = {{0, 1, 2, 3, 4, 5}};
  const auto a = bootstrap(groups, first, 50, 0.95, 1), b = bootstrap(groups, first, 50, 0.95, 1);
  REQUIRE(a.has_value());
  CHECK(a->front().low == b->front().low);
  CHECK(a->front().high == b->front().high);
  CHECK(a->front().low < a->front().high);
  CHECK(!bootstrap({{0, 1}}, first, 50, 0.95, 1).has_value());
}

}  // namespace
}  // namespace spillway::calibration
