#include "model/base/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace spillway {
namespace {

/// Scales `value` down by `step` until it is below it; `units` are tried in order.
template <std::size_t N>
std::string scaled(double value, double step, const std::array<std::string_view, N>& units,
                   std::string_view first_format) {
  std::size_t i = 0;
  while (std::abs(value) >= step && i + 1 < N) {
    value /= step;
    ++i;
  }
  return i == 0 ? fmt::format(fmt::runtime(first_format), value, units[i])
                : fmt::format("{:.2f} {}", value, units[i]);
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"B",   "KiB", "MiB",
                                                             "GiB", "TiB", "PiB"};
  return scaled(static_cast<double>(bytes.value()), 1024, kUnits, "{:.0f} {}");
}

std::string format_seconds(Seconds time) {
  const double s = time.value();
  const double size = std::abs(s);
  if (size == 0) return "0 s";
  if (size >= 1) return fmt::format("{:.3f} s", s);
  if (size >= 1e-3) return fmt::format("{:.2f} ms", s * 1e3);
  return fmt::format("{:.1f} us", s * 1e6);
}

std::string format_flops(Flops flops) {
  static constexpr std::array<std::string_view, 7> kUnits = {"FLOP",  "kFLOP", "MFLOP", "GFLOP",
                                                             "TFLOP", "PFLOP", "EFLOP"};
  return scaled(flops.value(), 1000, kUnits, "{:.0f} {}");
}

std::string format_count(std::int64_t n) {
  std::string digits = std::to_string(std::llabs(n));
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return n < 0 ? "-" + digits : digits;
}

}  // namespace spillway
