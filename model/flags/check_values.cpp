#include "model/flags/check_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "model/base/result.h"
#include "model/flags/flag_settings.h"
#include "model/flags/flag_table.h"

namespace spillway {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Whether one of the words in "a, b, c" is `word`.
bool is_among(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t comma = std::min(words.find(", "), words.size());
    if (same_word(words.substr(0, comma), word)) return true;
    words.remove_prefix(std::min(comma + 2, words.size()));
  }
  return false;
}

bool is_number(const std::string& text) {
  if (text.empty()) return false;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return *end == '\0';
}

/// Either all names have a sign, or none has.
bool mixes_signs(std::string_view names) {
  bool with = false, without = false;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    (names.front() == '+' || names.front() == '-' ? with : without) = true;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return with && without;
}

std::optional<std::string> find_integer_fault(const std::string& value, std::int64_t most) {
  const auto number = parse_flag_integer(value);
  if (!number) return quoted(value) + " is no whole number";
  if (*number > most || *number < -most - 1) return quoted(value) + " is out of range";
  return std::nullopt;
}

std::optional<std::string> find_fault(const KnownFlag& flag, const std::string& value) {
  switch (flag.type) {
    case FlagType::kBool:
      if (!parse_flag_bool(value)) return quoted(value) + " is neither true nor false";
      return std::nullopt;
    case FlagType::kInt32:
      return find_integer_fault(value, std::numeric_limits<std::int32_t>::max());
    case FlagType::kInt64:
      return find_integer_fault(value, std::numeric_limits<std::int64_t>::max());
    case FlagType::kNumber:
      if (!is_number(value)) return quoted(value) + " is no number";
      return std::nullopt;
    case FlagType::kEnum: {
      const FlagInfo* info = find_flag(flag.name);
      if (info == nullptr || info->values.empty() || is_among(info->values, value))
        return std::nullopt;
      return fmt::format("{} is none of {}", quoted(value), info->values);
    }
    case FlagType::kEnumList:
      if (mixes_signs(value))
        return quoted(value) + " has names with + or - and names without: all of them or none";
      return std::nullopt;
    case FlagType::kText:
    case FlagType::kPairs:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_value_fault(const KnownFlag& flag, const FlagUse& use) {
  if (use.value) return find_fault(flag, *use.value);
  if (flag.type == FlagType::kBool) return std::nullopt;
  return fmt::format("it has no value, and needs {}", name_of(flag.type));
}

}  // namespace spillway
