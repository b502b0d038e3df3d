// Lines and words of texts that tools print for people.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::calibration {

/// Calls visit(line, number) for every line, without its end; numbers start at 1.
template <typename Visit>
void each_line(std::string_view text, const Visit& visit) {
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, ++number);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

inline std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(" \t"); at != std::string_view::npos;
       at = text.find_first_not_of(" \t", at)) {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// In whatever unit.
inline constexpr double kNothingMeasures = 1e21;

/// A number, all of `text`; empty for what nothing measures.
inline std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(std::abs(value) < kNothingMeasures))
    return std::nullopt;
  return value;
}

/// A whole number, all of `text`.
inline std::optional<std::int64_t> to_whole(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// What stands behind `key` and a colon in "key : value"; empty where the line has another key.
inline std::string_view value_of(std::string_view line, std::string_view key) {
  line = trimmed(line);
  if (!line.starts_with(key)) return {};
  line = trimmed(line.substr(key.size()));
  if (!line.starts_with(':')) return {};
  return trimmed(line.substr(1));
}

}  // namespace spillway::calibration
