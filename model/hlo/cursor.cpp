#include "model/hlo/cursor.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace spillway::hlo {
namespace {

enum CharClass : std::uint8_t {
  kName = 1,        // may stand in a name
  kWord = 2,        // may stand in a keyword
  kStructural = 4,  // bracket, quote or comment: what balanced() must look at
  kValueEnd = 8,    // where a bare attribute value may end
};

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    std::uint8_t bits = 0;
    if (letter || digit || c == '.' || c == '_' || c == '-' || c == '$' || c == ':') bits |= kName;
    if (letter || digit || c == '-' || c == '_') bits |= kWord;
    if (c == '(' || c == ')' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"' ||
        c == '\'')
      bits |= kStructural | kValueEnd;
    if (c == '/') bits |= kStructural;
    if (c == ',' || c == '\n' || c == '\r') bits |= kValueEnd;
    classes[static_cast<std::size_t>(c)] = bits;
  }
  return classes;
}
constexpr auto kClasses = make_classes();

bool is(char c, CharClass wanted) {
  return (kClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

}  // namespace

void Cursor::fail(std::size_t position, std::string text, std::string advice) {
  if (error_) return;
  position = std::min(position, text_.size());
  const std::string_view before = text_.substr(0, position);
  const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n')) + 1;
  const std::size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto column = static_cast<std::uint32_t>(position - line_start) + 1;
  std::string_view excerpt = text_.substr(line_start);
  excerpt = excerpt.substr(0, excerpt.find_first_of("\r\n"));
  // Long or binary lines help nobody; the position says enough.
  constexpr std::size_t kLongest = 160;
  const bool readable = std::ranges::all_of(
      excerpt, [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\t'; });
  if (excerpt.size() > kLongest || !readable) excerpt = {};
  error_ = Error{ErrorKind::kInput, std::move(text), SourceRef{path_, line, column},
                 std::string(excerpt), std::move(advice)};
  at_ = text_.size();
}

bool Cursor::skip_comment() {
  if (text_[at_ + 1] == '*') {
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      fail(at_, "a comment is not closed");
      return false;
    }
    at_ = end + 2;
    return true;
  }
  if (text_[at_ + 1] != '/') return false;
  at_ = std::min(text_.find('\n', at_), text_.size());
  return true;
}

void Cursor::skip_string() {
  const std::size_t start = at_;
  const char quote = text_[at_++];
  while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) return fail(start, "a string is not closed");
  ++at_;
}

bool Cursor::accept_word(std::string_view word) {
  skip_blanks();
  if (failed() || !text_.substr(at_).starts_with(word)) return false;
  const std::size_t end = at_ + word.size();
  if (end < text_.size() && is(text_[end], kName)) return false;
  at_ = end;
  return true;
}

bool Cursor::expect(char c) {
  if (accept(c)) return true;
  fail_here(std::string("expected '") + c + "'");
  return false;
}

std::string_view Cursor::name(std::string_view what) {
  skip_blanks();
  std::size_t start = at_;
  if (start < text_.size() && text_[start] == '%') ++start;
  std::size_t end = start;
  while (end < text_.size() && is(text_[end], kName)) ++end;
  if (end == start || failed()) {
    fail(at_, "expected " + std::string(what));
    return {};
  }
  at_ = end;
  return text_.substr(start, end - start);
}

std::string_view Cursor::word() {
  skip_blanks();
  const std::size_t start = at_;
  while (at_ < text_.size() && is(text_[at_], kWord)) ++at_;
  return text_.substr(start, at_ - start);
}

std::optional<std::int64_t> Cursor::number() {
  skip_blanks();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc() || failed()) return std::nullopt;
  at_ = static_cast<std::size_t>(end - text_.data());
  return value;
}

std::string_view Cursor::balanced() {
  skip_blanks();
  const std::size_t start = at_;
  // Brackets need not be told apart: HLO never mixes them up, and a cut file ends with depth > 0.
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (!is(c, kStructural)) {
      ++at_;
      continue;
    }
    if (c == '"') {
      skip_string();
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      if (!skip_comment()) return {};
    } else if (c == '\'' || c == '/') {
      ++at_;  // mesh['x'=8]: no bracket stands between such quotes
    } else {
      ++at_;
      depth += (c == '(' || c == '{' || c == '[') ? 1 : std::size_t(-1);
      if (depth == 0) return text_.substr(start, at_ - start);
    }
  }
  fail(start, "a bracket is not closed", "the file may be cut");
  return {};
}

std::string_view Cursor::attribute_value() {
  skip_blanks();
  const std::size_t start = at_;
  while (at_ < text_.size() && !failed()) {
    const char c = text_[at_];
    if (!is(c, kValueEnd)) {
      ++at_;
    } else if (c == '"') {
      skip_string();
    } else if (c == '(' || c == '{' || c == '[') {
      balanced();
    } else if (c == '\'') {
      ++at_;
    } else {
      break;
    }
  }
  std::size_t end = std::min(at_, text_.size());
  while (end > start && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
  return text_.substr(start, end - start);
}

}  // namespace spillway::hlo
