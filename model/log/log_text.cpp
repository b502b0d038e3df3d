#include "model/log/log_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace spillway::log {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};
/// Longer names first: "B" is the beginning of "Bytes".
constexpr Unit kUnits[] = {{"bytes", 1},
                           {"KiB", std::int64_t{1} << 10},
                           {"MiB", std::int64_t{1} << 20},
                           {"GiB", std::int64_t{1} << 30},
                           {"TiB", std::int64_t{1} << 40},
                           {"PiB", std::int64_t{1} << 50},
                           {"KB", 1'000},
                           {"kB", 1'000},
                           {"MB", 1'000'000},
                           {"GB", 1'000'000'000},
                           {"TB", 1'000'000'000'000},
                           {"B", 1}};

/// More is no size of a machine's memory but a number that went wrong; and sums stay numbers.
constexpr std::int64_t kMost = std::int64_t{1} << 60;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

/// Takes a unit if one is next, as a word of its own.
const Unit* take_unit(std::string_view& rest) {
  const std::string_view from = without_blanks(rest);
  for (const Unit& unit : kUnits) {
    if (!from.starts_with(unit.name)) continue;
    if (from.size() > unit.name.size() && is_letter(from[unit.name.size()])) continue;
    rest = from.substr(unit.name.size());
    return &unit;
  }
  return nullptr;
}

/// A number with `decimals` digits behind the point, which stands for a range.
std::optional<LoggedBytes> rounded(std::string_view digits, std::size_t decimals,
                                   const Unit& unit) {
  double value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  const double bytes = value * static_cast<double>(unit.bytes);
  if (!(bytes <= static_cast<double>(kMost)) || decimals > 15) return std::nullopt;
  const double half = static_cast<double>(unit.bytes) * 0.5 / std::pow(10.0, decimals);
  return LoggedBytes{Bytes(std::llround(bytes)), Bytes(static_cast<std::int64_t>(std::ceil(half)))};
}

}  // namespace

std::vector<Line> split_lines(std::string_view text) {
  std::vector<Line> lines;
  LineNumber number = 1;
  std::size_t start = 0;
  const auto add = [&](std::size_t end) {
    std::string_view line = text.substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({number, line});
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') {
      add(at);
      start = at + 1;
      ++number;
    } else if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == 'n') {
      add(at);
      start = at + 2;
      ++at;
    }
  }
  if (start < text.size()) add(text.size());
  return lines;
}

bool may_be_equal(const LoggedBytes& a, const LoggedBytes& b) {
  const Bytes apart = a.value < b.value ? b.value - a.value : a.value - b.value;
  return apart <= a.off_by + b.off_by;
}

std::string_view without_half_number(std::string_view text) {
  if (text.empty() || !is_digit(text.back())) return text;
  while (!text.empty() && (is_digit(text.back()) || text.back() == '.' || text.back() == '-'))
    text.remove_suffix(1);
  return text;
}

std::optional<std::string_view> behind(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + words.size());
}

std::optional<LoggedBytes> take_bytes(std::string_view& rest) {
  const std::string_view from = without_blanks(rest);
  std::size_t end = 0;
  while (end < from.size() && is_digit(from[end])) ++end;
  if (end == 0) return std::nullopt;
  std::size_t decimals = 0;
  if (end + 1 < from.size() && from[end] == '.' && is_digit(from[end + 1])) {
    while (end + 1 + decimals < from.size() && is_digit(from[end + 1 + decimals])) ++decimals;
  }
  const std::string_view digits = from.substr(0, decimals == 0 ? end : end + 1 + decimals);
  std::string_view behind_number = from.substr(digits.size());
  const Unit* const unit = take_unit(behind_number);
  if (decimals > 0 || (unit != nullptr && unit->bytes > 1)) {
    if (unit == nullptr) return std::nullopt;
    const auto bytes = rounded(digits, decimals, *unit);
    if (bytes) rest = behind_number;
    return bytes;
  }
  // "12K" is not twelve: its unit was cut, or is none of these.
  if (unit == nullptr && !behind_number.empty() && is_letter(behind_number[0])) return std::nullopt;
  std::int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
    return std::nullopt;
  if (value > kMost) return std::nullopt;
  rest = behind_number;
  return LoggedBytes{Bytes(value)};
}

std::optional<LoggedBytes> take_exact_bytes(std::string_view& rest) {
  const auto first = take_bytes(rest);
  if (!first) return std::nullopt;
  std::string_view more = without_blanks(rest);
  if (!more.starts_with('(')) return first;
  more.remove_prefix(1);
  if (more.starts_with("rounded to")) more.remove_prefix(10);
  const auto exact = take_bytes(more);
  // "6.00MiB (0.00%)" is a share, not the size again.
  if (!exact || !exact->exact() || !without_blanks(more).starts_with(')')) return first;
  rest = without_blanks(more).substr(1);
  return exact;
}

std::optional<std::int64_t> take_integer(std::string_view& rest) {
  const std::string_view from = without_blanks(rest);
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(from.data(), from.data() + from.size(), value);
  if (failed != std::errc()) return std::nullopt;
  rest = from.substr(static_cast<std::size_t>(end - from.data()));
  return value;
}

std::string_view take_word(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && (is_letter(rest[end]) || is_digit(rest[end]) || rest[end] == '_' ||
                               rest[end] == '.' || rest[end] == '-'))
    ++end;
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

std::string printable(std::string_view text, std::size_t most) {
  if (text.size() > most) {
    while (most > 0 && (text[most] & 0xc0) == 0x80) --most;
    text = text.substr(0, most);
  }
  std::string clean(text);
  std::ranges::replace_if(
      clean, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return clean;
}

std::string_view trimmed(std::string_view text) {
  text = without_blanks(text);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace spillway::log
