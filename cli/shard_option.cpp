#include "cli/shard_option.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace spillway {
namespace {

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto index = whole_number(std::string_view(text).substr(0, slash));
  const auto count =
      slash < text.size() ? whole_number(std::string_view(text).substr(slash + 1)) : std::nullopt;
  if (!index || !count || !Shard{*index, *count}.is_valid())
    return usage_error("--shard " + quoted(text) + " is no part of a whole",
                       "for example --shard 1/8, the first of eight");
  return Shard{*index, *count};
}

}  // namespace spillway
