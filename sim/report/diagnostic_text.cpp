#include "sim/report/diagnostic_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway {
namespace {

/// Letters of UTF-8 text: bytes that do not continue one.
std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string wrapped(std::string_view text, std::string_view indent, std::size_t width) {
  std::string out;
  std::size_t used = 0;  // letters in the line so far
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (used > 0 && used + 1 + letters(word) > width) {
      out += '\n';
      used = 0;
    }
    const std::string_view before = used == 0 ? indent : " ";
    out += fmt::format("{}{}", before, word);
    used += letters(before) + letters(word);
  }
  return out + '\n';
}

std::string to_text(const Diagnostic& diagnostic) {
  constexpr std::string_view kIndent = "           ";
  std::string text = fmt::format("  {:<8} {}\n", name_of(diagnostic.severity), diagnostic.code);
  text += wrapped(diagnostic.what, kIndent);
  if (!diagnostic.why.empty()) text += wrapped(diagnostic.why, kIndent);
  if (!diagnostic.advice.empty()) text += wrapped("→ " + diagnostic.advice, kIndent);
  return text;
}

}  // namespace spillway
