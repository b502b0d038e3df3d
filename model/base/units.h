// Quantities with a type: Bytes / BytesPerSecond is Seconds, Bytes + Seconds does not compile.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace spillway {

/// A number of `Rep` that only mixes with its own kind. Scaling by plain numbers is allowed.
template <typename Tag, typename Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(k * a.value_); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value_ / k); }
  constexpr Quantity& operator+=(Quantity b) {
    value_ += b.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    value_ -= b.value_;
    return *this;
  }

  /// How many times `b` fits into `a`.
  friend constexpr double ratio(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops =
    Quantity<struct FlopsTag, double>;  ///< exact up to 2^53, a step has about 2^56: 2e-16
using Seconds = Quantity<struct SecondsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

/// A position in the flattened schedule of a program (model/memory/live_range.h).
using LogicalTime = Quantity<struct LogicalTimeTag, std::int32_t>;

/// Simulated time in integer picoseconds: exact, so that ties and goldens hold on every machine.
/// The range is 106 days.
using SimTime = Quantity<struct SimTimeTag, std::int64_t>;

constexpr Seconds operator/(Bytes size, BytesPerSecond rate) {
  return Seconds(static_cast<double>(size.value()) / rate.value());
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.value() / rate.value());
}
constexpr Seconds to_seconds(SimTime time) {
  return Seconds(static_cast<double>(time.value()) * 1e-12);
}

/// Rounds to the nearest picosecond; what is beyond the range becomes its end.
constexpr SimTime to_sim_time(Seconds time) {
  constexpr double kRange = 9223372036854775808.0;  // 2^63
  const double picoseconds = time.value() * 1e12 + (time.value() < 0 ? -0.5 : 0.5);
  if (picoseconds >= kRange) return SimTime(std::numeric_limits<std::int64_t>::max());
  if (picoseconds <= -kRange) return SimTime(std::numeric_limits<std::int64_t>::min());
  return SimTime(static_cast<std::int64_t>(picoseconds));
}

}  // namespace spillway
