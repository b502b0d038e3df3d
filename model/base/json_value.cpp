#include "model/base/json_value.h"

namespace spillway {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// Where the object or list that starts at text[0] ends, strings inside it skipped.
std::size_t end_of_brackets(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return text.size();
}

std::string_view value_at_start(std::string_view text) {
  if (text.starts_with('{') || text.starts_with('[')) return text.substr(0, end_of_brackets(text));
  if (text.starts_with('"')) return text.substr(1, text.substr(1).find('"'));
  return text.substr(0, text.find_first_of(",}] \t\r\n"));
}

}  // namespace

std::string_view json_value(std::string_view json, std::string_view key) {
  for (std::size_t at = json.find(key); at != std::string_view::npos; at = json.find(key, at + 1)) {
    std::size_t end = at + key.size();
    if (at == 0 || json[at - 1] != '"' || end >= json.size() || json[end] != '"') continue;
    end = json.find_first_not_of(kBlanks, end + 1);
    if (end == std::string_view::npos || json[end] != ':') continue;
    end = json.find_first_not_of(kBlanks, end + 1);
    if (end != std::string_view::npos) return value_at_start(json.substr(end));
  }
  return {};
}

}  // namespace spillway
