#include "model/hlo/cursor.h"

#include <algorithm>
#include <charconv>

namespace spillway::hlo {
namespace {

/// %x, ROOT x, or x =
bool starts_instruction(const char* at) {
  if (*at == '%' || std::strncmp(at, "ROOT ", 5) == 0) return true;
  if (!is(*at, kName)) return false;
  while (is(*at, kName)) ++at;
  while (*at == ' ' || *at == '\t') ++at;
  return *at == '=';
}

}  // namespace

void Cursor::fail(std::size_t position, std::string text, std::string advice) {
  if (!error_) {
    if (advice.empty() && is_cut_at(position)) advice = "the file may be cut";
    error_ = error_in_text(path_, text_, position, std::move(text), std::move(advice));
  }
  at_ = end_;
}

/// Whether `position` is behind everything, or in a last line that does not end as a module does.
bool Cursor::is_cut_at(std::size_t position) const {
  const std::size_t last = text_.find_last_not_of(" \t\r\n");
  if (last == std::string::npos || position > last) return true;
  return text_[last] != '}' && text_.find('\n', position) >= last;
}

const char* Cursor::end_of_comment(const char* at) const {
  if (at[1] == '/') {
    while (at < end_ && *at != '\n' && *at != '\r') ++at;
    return at;
  }
  if (at[1] != '*') return at;
  const std::string_view inside(at + 2, static_cast<std::size_t>(end_ - at - 2));
  const std::size_t end = inside.find("*/");
  return end == std::string_view::npos ? nullptr : inside.data() + end + 2;
}

void Cursor::skip_comments() {
  while (*at_ == '/') {
    const char* const behind = end_of_comment(at_);
    if (behind == nullptr) return fail(position(), "a comment is not closed");
    if (behind == at_) return;
    at_ = behind;
    while (is(*at_, kBlank)) ++at_;
  }
}

const char* Cursor::end_of_string(const char* at) const {
  for (const char* quote = at + 1;; ++quote) {
    quote =
        static_cast<const char*>(std::memchr(quote, '"', static_cast<std::size_t>(end_ - quote)));
    if (quote == nullptr) return nullptr;
    const char* escape = quote;
    while (escape[-1] == '\\') --escape;  // the opening quote stops it
    if ((quote - escape) % 2 == 0) return quote + 1;
  }
}

const char* Cursor::end_of_quoted_name(const char* at) const {
  for (const char* to = at + 1; to < end_ && *to != '\n' && *to != '\r'; ++to)
    if (*to == '\'') return to + 1;
  return at + 1;
}

/// Moves from a bracket to behind its partner. Kinds of brackets need not be told apart: HLO never
/// mixes them up, and a cut file ends inside some.
bool Cursor::skip_group(bool json) {
  const std::size_t start = position();
  const char* at = at_;
  const auto give_up = [&](const char* where, const char* what) {
    fail(static_cast<std::size_t>(where - text_.data()), what, "the file may be cut");
    return false;
  };
  for (std::size_t depth = 0;;) {
    while (!is(*at, kGroupStop)) ++at;
    const char* const stop = at;
    switch (*at++) {
      case '(':
      case '{':
      case '[':
        ++depth;
        break;
      case ')':
      case '}':
      case ']':
        if (--depth > 0) break;
        at_ = at;
        return true;
      case '"':
        at = end_of_string(stop);
        if (at == nullptr) return give_up(stop, "a string is not closed");
        break;
      case '\'':
        if (!json) at = end_of_quoted_name(stop);
        break;
      case '/':
        if (json || (*at != '*' && *at != '/')) break;
        at = end_of_comment(stop);
        if (at == nullptr) return give_up(stop, "a comment is not closed");
        break;
      default:  // a zero: the end, or a byte that is none of HLO's
        if (stop >= end_) return give_up(text_.data() + start, "a bracket is not closed");
        break;
    }
  }
}

std::string_view Cursor::balanced(bool json) {
  skip_blanks();
  const std::size_t start = position();
  if (*at_ != '(' && *at_ != '{' && *at_ != '[') {
    fail_here("expected a bracket");
    return {};
  }
  return skip_group(json) ? since(start) : std::string_view();
}

std::string_view Cursor::string() {
  skip_blanks();
  if (*at_ != '"') return fail_here("expected a string"), std::string_view();
  const std::size_t start = position();
  const char* const behind = end_of_string(at_);
  if (behind == nullptr)
    return fail_here("a string is not closed", "the file may be cut"), std::string_view();
  at_ = behind;
  return since(start);
}

std::string_view Cursor::attribute_value(bool json) {
  skip_blanks();
  const std::size_t start = position();
  for (bool inside = true; inside;) {
    while (!is(*at_, kValueStop)) ++at_;
    switch (*at_) {
      case '(':
      case '{':
      case '[':
        if (!skip_group(json)) return {};
        break;
      case '"':
        if (string().empty()) return {};
        break;
      case '\'':
        at_ = end_of_quoted_name(at_);
        break;
      case '/':
        if (at_[1] == '/' || at_[1] == '*')
          inside = false;
        else
          ++at_;
        break;
      case ' ':
      case '\t': {
        // Behind a blank the value goes on (literal=s32[2]{0} {1, 2}), unless a new instruction
        // starts there.
        const char* next = at_;
        while (*next == ' ' || *next == '\t') ++next;
        if (starts_instruction(next) || is(*next, kBlank) || *next == ',')
          inside = false;
        else
          at_ = next;
        break;
      }
      default:  // , or the end of a line, of a bracket around or of the text
        inside = false;
    }
  }
  std::string_view value = since(start);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  return value;
}

std::optional<std::int64_t> Cursor::number() {
  skip_blanks();
  const char* to = at_;
  std::int64_t value = 0;
  constexpr std::ptrdiff_t kSurelyFits = 18;
  for (; is(*to, kDigit) && to - at_ < kSurelyFits; ++to) value = value * 10 + (*to - '0');
  if (is(*to, kDigit)) {
    const auto [end, error] = std::from_chars(at_, end_, value);
    if (error != std::errc()) return std::nullopt;
    to = end;
  }
  if (to == at_) return std::nullopt;
  at_ = to;
  return value;
}

}  // namespace spillway::hlo
