// Samples of a machine whose truth is known, with the spread that real ones have: a few percent,
// and now and then one that took several times as long.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "calibration/measurements.h"
#include "model/hardware/read_profile.h"
#include "tests/golden.h"

namespace spillway::testing {

/// Of itself. (doctest's Approx is of 1 + the value, which lets any duration pass for any other.)
inline double off(double value, double truth) { return std::abs(value / truth - 1); }

/// Seeded, the same with every standard library.
class Noise {
 public:
  explicit Noise(std::uint64_t seed, double spread = 0.02, double outliers = 0.05)
      : random_(seed), spread_(spread), outliers_(outliers) {}

  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  /// Normal, by Box and Muller.
  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform());
  }
  /// A time as it would be measured.
  Seconds measured(Seconds truth) {
    const double slow = uniform() < outliers_ ? 1.5 + 2 * uniform() : 1;
    return truth * (slow * std::exp(spread_ * normal()));
  }

 private:
  std::mt19937_64 random_;
  double spread_, outliers_;
};

inline calibration::CopySample copy_of(calibration::CopyDirection direction,
                                       calibration::CopyRegime regime, Bytes bytes, Seconds time) {
  calibration::CopySample sample;
  sample.direction = direction;
  sample.regime = regime;
  sample.bytes = bytes;
  sample.rate = BytesPerSecond(static_cast<double>(bytes.value()) / time.value());
  sample.where = {"samples", static_cast<std::uint32_t>(bytes.value() >> 10), {}};
  return sample;
}

inline HardwareProfile shipped_profile(const std::string& id) {
  return read_profile(source_path("hw_profiles/" + id + ".yaml")).value();
}

/// The line of a report; null when there is none.
template <typename FitResult>
auto line_of(const FitResult& fit, const std::string& key) -> decltype(&fit.figures.front()) {
  for (const auto& figure : fit.figures)
    if (figure.key == key) return &figure;
  return nullptr;
}

}  // namespace spillway::testing
