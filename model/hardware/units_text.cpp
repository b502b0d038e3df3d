#include "model/hardware/units_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <system_error>

namespace spillway {
namespace {

/// A unit is a power of ten, or a power of two for the binary ones.
struct Unit {
  std::string_view name;
  int exponent;
  bool binary = false;
};

constexpr Unit kBytes[] = {{"B", 0},          {"kB", 3},         {"MB", 6},
                           {"GB", 9},         {"TB", 12},        {"KiB", 10, true},
                           {"MiB", 20, true}, {"GiB", 30, true}, {"TiB", 40, true}};
constexpr Unit kBytesPerSecond[] = {{"B/s", 0},          {"kB/s", 3},         {"MB/s", 6},
                                    {"GB/s", 9},         {"TB/s", 12},        {"KiB/s", 10, true},
                                    {"MiB/s", 20, true}, {"GiB/s", 30, true}, {"TiB/s", 40, true}};
constexpr Unit kFlopsPerSecond[] = {{"FLOP/s", 0},  {"kFLOP/s", 3},  {"MFLOP/s", 6},
                                    {"GFLOP/s", 9}, {"TFLOP/s", 12}, {"PFLOP/s", 15}};
constexpr Unit kSeconds[] = {{"s", 0}, {"ms", -3}, {"us", -6}, {"ns", -9}, {"ps", -12}};
constexpr Unit kHertz[] = {{"Hz", 0}, {"kHz", 3}, {"MHz", 6}, {"GHz", 9}};
constexpr Unit kFactor[] = {{"x", 0}};

/// What parse_units knows about a kind of quantity.
template <typename Q>
struct Kind;
template <>
struct Kind<Bytes> {
  static constexpr std::span<const Unit> units = kBytes;
  static constexpr std::string_view noun = "a size";
  static constexpr std::string_view example = "480 GB";
};
template <>
struct Kind<BytesPerSecond> {
  static constexpr std::span<const Unit> units = kBytesPerSecond;
  static constexpr std::string_view noun = "a rate";
  static constexpr std::string_view example = "4.8 TB/s";
};
template <>
struct Kind<FlopsPerSecond> {
  static constexpr std::span<const Unit> units = kFlopsPerSecond;
  static constexpr std::string_view noun = "a compute rate";
  static constexpr std::string_view example = "989.2 TFLOP/s";
};
template <>
struct Kind<Seconds> {
  static constexpr std::span<const Unit> units = kSeconds;
  static constexpr std::string_view noun = "a duration";
  static constexpr std::string_view example = "8 us";
};
template <>
struct Kind<Hertz> {
  static constexpr std::span<const Unit> units = kHertz;
  static constexpr std::string_view noun = "a frequency";
  static constexpr std::string_view example = "2.062 GHz";
};
template <>
struct Kind<Factor> {
  static constexpr std::span<const Unit> units = kFactor;
  static constexpr std::string_view noun = "a factor";
  static constexpr std::string_view example = "1.25 x";
};
template <>
struct Kind<Count> {
  static constexpr std::string_view example = "132";
};

Error problem(std::string text, std::string_view example) {
  return Error{
      ErrorKind::kInput, std::move(text), {}, "", fmt::format("for example \"{}\"", example)};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The length of the decimal number that `text` starts with; 0 when it starts with none.
///   -12.50e3 GB/s
///   ^-------^        a sign, digits, a fraction, an exponent
std::size_t number_length(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i > begin;
  };
  if (i < text.size() && text[i] == '-') ++i;
  if (!digits()) return 0;
  if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
    ++i;
    digits();
  }
  const std::size_t mantissa = i;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) i = mantissa;
  }
  return i;
}

/// `number` x 10^`shift`, rounded once: "200.7" and 9 give the double nearest to 200.7e9.
std::optional<double> shifted(std::string_view number, int shift) {
  const std::size_t e = number.find_first_of("eE");
  int exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view digits = number.substr(e + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (parsed.ec != std::errc() || std::abs(exponent) > 400) return std::nullopt;
    number = number.substr(0, e);
  }
  const std::string text = fmt::format("{}e{}", number, exponent + shift);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

struct Parts {
  std::string_view number, unit;
};

Parts split(std::string_view text) {
  const std::size_t length = number_length(text);
  Parts parts{text.substr(0, length), text.substr(length)};
  while (!parts.unit.empty() && parts.unit.front() == ' ') parts.unit.remove_prefix(1);
  return parts;
}

/// The value in base units, or an error whose text continues the name of what was read.
template <typename Q>
Result<double> parse_number(std::string_view text) {
  using K = Kind<Q>;
  const Parts parts = split(text);
  if (parts.number.empty())
    return problem(fmt::format("is '{}', not {}", text, K::noun), K::example);
  if (parts.unit.empty()) return problem("needs a unit", K::example);
  const auto unit = std::ranges::find(K::units, parts.unit, &Unit::name);
  if (unit == K::units.end()) {
    if (parts.unit.find("bit") != std::string_view::npos || parts.unit.ends_with("b/s"))
      return problem(fmt::format("is in '{}'; write bytes, an eighth of the bits", parts.unit),
                     K::example);
    return problem(fmt::format("is in '{}', which is no unit of {}", parts.unit, K::noun),
                   K::example);
  }
  const std::optional<double> value = shifted(parts.number, unit->binary ? 0 : unit->exponent);
  const double scaled = std::ldexp(value.value_or(INFINITY), unit->binary ? unit->exponent : 0);
  if (!std::isfinite(scaled)) return problem("is out of range", K::example);
  return scaled;
}

template <typename Q>
Result<Q> parse_real(std::string_view text) {
  const Result<double> value = parse_number<Q>(text);
  if (!value) return value.error();
  return Q(*value);
}

/// The shortest decimal digits of a positive `value`: value = 0.d1d2d3… x 10^point.
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal to_decimal(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  Decimal result;
  for (const char c : text.substr(0, e))
    if (is_digit(c)) result.digits += c;
  std::string_view exponent = text.substr(e + 1);
  if (exponent.front() == '+') exponent.remove_prefix(1);
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), result.point);
  ++result.point;
  return result;
}

/// Writes `decimal` / 10^`exponent` without an exponent of its own.
std::string plain(const Decimal& decimal, int exponent) {
  const int point = decimal.point - exponent;
  const int size = static_cast<int>(decimal.digits.size());
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + decimal.digits;
  if (point >= size)
    return decimal.digits + std::string(static_cast<std::size_t>(point - size), '0');
  return decimal.digits.substr(0, static_cast<std::size_t>(point)) + "." +
         decimal.digits.substr(static_cast<std::size_t>(point));
}

/// In the largest decimal unit that leaves a digit before the point.
std::string to_decimal_text(double value, std::span<const Unit> units) {
  if (value == 0) return fmt::format("0 {}", units.front().name);
  if (value < 0) return "-" + to_decimal_text(-value, units);
  const Decimal decimal = to_decimal(value);
  const Unit* best = nullptr;
  const Unit* smallest = nullptr;
  for (const Unit& unit : units) {
    if (unit.binary) continue;
    if (smallest == nullptr || unit.exponent < smallest->exponent) smallest = &unit;
    if (unit.exponent < decimal.point && (best == nullptr || unit.exponent > best->exponent))
      best = &unit;
  }
  if (best == nullptr) best = smallest;
  return fmt::format("{} {}", plain(decimal, best->exponent), best->name);
}

}  // namespace

template <>
Result<Bytes> parse_units<Bytes>(std::string_view text) {
  const Result<double> value = parse_number<Bytes>(text);
  if (!value) return value.error();
  constexpr double kExact = 9007199254740992.0;  // 2^53, 8 PiB: beyond it a double skips bytes
  if (std::abs(*value) > kExact) return problem("is out of range", Kind<Bytes>::example);
  return Bytes(std::llround(*value));
}
template <>
Result<BytesPerSecond> parse_units<BytesPerSecond>(std::string_view text) {
  return parse_real<BytesPerSecond>(text);
}
template <>
Result<FlopsPerSecond> parse_units<FlopsPerSecond>(std::string_view text) {
  return parse_real<FlopsPerSecond>(text);
}
template <>
Result<Seconds> parse_units<Seconds>(std::string_view text) {
  return parse_real<Seconds>(text);
}
template <>
Result<Hertz> parse_units<Hertz>(std::string_view text) {
  return parse_real<Hertz>(text);
}
template <>
Result<Factor> parse_units<Factor>(std::string_view text) {
  return parse_real<Factor>(text);
}
template <>
Result<Count> parse_units<Count>(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc::result_out_of_range)
    return problem("is out of range", Kind<Count>::example);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return problem(fmt::format("is '{}', not a whole number", text), Kind<Count>::example);
  return Count(value);
}

template <typename Q>
std::string_view example_of() {
  return Kind<Q>::example;
}
template std::string_view example_of<Bytes>();
template std::string_view example_of<BytesPerSecond>();
template std::string_view example_of<FlopsPerSecond>();
template std::string_view example_of<Seconds>();
template std::string_view example_of<Hertz>();
template std::string_view example_of<Factor>();
template std::string_view example_of<Count>();

std::string to_units_text(Bytes bytes) {
  const std::int64_t n = bytes.value();
  std::string best = fmt::format("{} B", n);
  for (const Unit& unit : kBytes) {  // the shortest text that is exact: 128 MiB, 480 GB
    std::int64_t size = unit.binary ? std::int64_t{1} << unit.exponent : 1;
    for (int i = 0; !unit.binary && i < unit.exponent; ++i) size *= 10;
    if (n == 0 || n % size != 0) continue;
    if (const std::string text = fmt::format("{} {}", n / size, unit.name);
        text.size() < best.size())
      best = text;
  }
  return best;
}
std::string to_units_text(BytesPerSecond rate) {
  return to_decimal_text(rate.value(), kBytesPerSecond);
}
std::string to_units_text(FlopsPerSecond rate) {
  return to_decimal_text(rate.value(), kFlopsPerSecond);
}
std::string to_units_text(Seconds time) { return to_decimal_text(time.value(), kSeconds); }
std::string to_units_text(Hertz frequency) { return to_decimal_text(frequency.value(), kHertz); }
std::string to_units_text(Factor factor) { return to_decimal_text(factor.value(), kFactor); }
std::string to_units_text(Count count) { return fmt::format("{}", count.value()); }

}  // namespace spillway
