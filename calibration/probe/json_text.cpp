#include "calibration/probe/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace spillway::probe {

void JsonText::quote(std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text_ += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text_ += '\\', text_ += c;
    else if (byte < 0x20)
      text_ += "\\u00", text_ += kHex[byte >> 4], text_ += kHex[byte & 15];
    else
      text_ += c;
  }
  text_ += '"';
}

/// The shortest digits that read back as the same number; what is no number is null.
void JsonText::number(double value) {
  if (!std::isfinite(value)) {
    text_ += "null";
    return;
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text_.append(digits.data(), end.ptr);
}

void JsonText::add(std::string_view key, const std::vector<double>& values) {
  open(key, '[');
  for (const double value : values) item(), number(value);
  close(']');
}

}  // namespace spillway::probe
