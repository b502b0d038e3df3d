#include "model/flags/read_flags.h"

#include <algorithm>

#include "model/base/read_file.h"
#include "model/flags/flag_names.h"

namespace spillway {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_name_letter(char c) {
  return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/// Where the first of `letters` stands at or behind `from`; the end when none does.
std::size_t find_any(std::string_view text, std::string_view letters, std::size_t from) {
  return std::min(text.find_first_of(letters, from), text.size());
}
std::size_t skip_any(std::string_view text, std::string_view letters, std::size_t from) {
  return std::min(text.find_first_not_of(letters, from), text.size());
}

/// A value in quotes that begins at `at`, which moves behind it.
std::string read_quoted(std::string_view text, std::size_t& at) {
  const char quote = text[at++];
  std::string value;
  for (; at < text.size() && text[at] != quote; ++at) {
    if (quote == '"' && text[at] == '\\' && at + 1 < text.size()) ++at;
    value += text[at];
  }
  if (at < text.size()) ++at;
  return value;
}

/// The name and the value in a word, which need not have one.
FlagUse split(std::string_view word) {
  FlagUse use;
  use.word = word;
  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos) use.value = std::string(word.substr(equals + 1));
  std::string_view name = word.substr(0, equals);
  if (name.starts_with("--")) name.remove_prefix(2);
  use.name = name;
  return use;
}

}  // namespace

FlagText read_flags(std::string_view text) {
  FlagText result;
  std::size_t at = skip_any(text, kBlanks, 0);
  while (at < text.size() && text[at] == '-') {
    const std::size_t begin = at;
    while (at < text.size() && is_name_letter(text[at])) ++at;
    const bool has_quotes =
        at + 1 < text.size() && text[at] == '=' && (text[at + 1] == '"' || text[at + 1] == '\'');
    if (has_quotes) {
      FlagUse use = split(text.substr(begin, at - begin));
      use.value = read_quoted(text, ++at);
      use.word = text.substr(begin, at - begin);
      result.uses.push_back(std::move(use));
    } else {
      at = find_any(text, kBlanks, at);
      result.uses.push_back(split(text.substr(begin, at - begin)));
    }
    at = skip_any(text, kBlanks, at);
  }
  result.unread = text.substr(at);
  return result;
}

namespace {

/// The last profile holds.
FlagText with_profile_read(FlagText text) {
  for (const FlagUse& use : text.uses)
    if (use.name == flag::kProfile) text.profile_fault = read_profile_fault(use.value.value_or(""));
  return text;
}

}  // namespace

Result<FlagText> read_flags_or_file(const std::string& text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos || text[first] == '-') return with_profile_read(read_flags(text));
  const auto content = read_file(text);
  if (content.ok()) return with_profile_read(read_flags(**content));
  return Error{ErrorKind::kUsage,
               "XLA would take " + quoted(text) + " for a file of flags, and there is none",
               {},
               "",
               "flags begin with two dashes: --xla_dump_to=DIR"};
}

}  // namespace spillway
