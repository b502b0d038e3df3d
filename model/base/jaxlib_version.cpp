#include "model/base/jaxlib_version.h"

#include <fmt/format.h>

#include <charconv>

namespace spillway {

std::optional<JaxlibVersion> parse_jaxlib_version(std::string_view text) {
  JaxlibVersion version;
  std::size_t count = 0;
  while (count < version.numbers.size()) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, version.numbers[count]);
    if (error != std::errc() || version.numbers[count] < 0) return std::nullopt;
    ++count;
    text.remove_prefix(static_cast<std::size_t>(at - text.data()));
    const bool more = text.size() > 1 && text[0] == '.' && text[1] >= '0' && text[1] <= '9';
    if (!more) break;
    text.remove_prefix(1);
  }
  // "0.11" is a version, "0" and "11 apples" are not.
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.size() > 1 && text[0] == '.') text.remove_prefix(1);
  const bool suffix = text.empty() || text[0] == '+' || is_letter(text[0]);
  if (count < 2 || !suffix) return std::nullopt;
  return version;
}

std::string to_string(const JaxlibVersion& version) {
  const auto& n = version.numbers;
  std::string text = fmt::format("{}.{}.{}", n[0], n[1], n[2]);
  if (n[3] != 0) text += fmt::format(".{}", n[3]);
  return text;
}

}  // namespace spillway
