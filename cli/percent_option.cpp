#include "cli/percent_option.h"

#include <charconv>
#include <cmath>

namespace spillway {

Result<double> read_percent(const std::string& option, std::string_view text) {
  const std::string_view number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  double percent = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (failed != std::errc() || end != number.data() + number.size() || !std::isfinite(percent) ||
      percent < 0)
    return usage_error(option + ": " + quoted(text) + " is no percentage", "for example 1%");
  return percent;
}

}  // namespace spillway
