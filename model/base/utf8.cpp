#include "model/base/utf8.h"

#include <algorithm>

namespace spillway {

CodePoint decode_utf8(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xc2 || first > 0xf4 || bytes > text.size()) return {};
  std::uint32_t value = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kSmallest[bytes] || value > 0x10ffff || surrogate) return {};
  return {value, bytes};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = decode_utf8(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool disturbs_terminal(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

std::string printable_lines(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const char first = text.front();
    const CodePoint point = decode_utf8(text);
    const std::size_t taken = std::max<std::size_t>(point.bytes, 1);
    const bool shows =
        first == '\n' || first == '\t' || (point.bytes > 0 && !disturbs_terminal(point.value));
    clean += shows ? text.substr(0, taken) : "?";
    text.remove_prefix(taken);
  }
  return clean;
}

std::string printable_line(std::string_view text) {
  std::string line = printable_lines(text);
  std::ranges::replace(line, '\n', '?');
  return line;
}

}  // namespace spillway
