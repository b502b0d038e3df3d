// A place in HLO text, and the few moves a reader makes. Nothing is copied: what is read are views
// into the text.
//
// Every move skips blanks and comments in front. The first mistake is kept and puts the cursor at
// the end, where all later moves fail, so that a reader may check once, at the end of a phrase. The
// byte behind the text is a zero, as std::string has it: loops stop there without counting.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/hlo/char_class.h"

namespace spillway::hlo {

class Cursor {
 public:
  /// `text` must outlive the cursor and whatever is read.
  Cursor(const std::string& text, std::string path)
      : text_(text), path_(std::move(path)), at_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() {
    skip_blanks();
    return at_ >= end_;
  }
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  /// The next character without taking it; '\0' at the end.
  char peek() {
    skip_blanks();
    return *at_;
  }
  /// Takes `c` if it is next.
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  /// Takes `token` if it is next.
  bool accept(std::string_view token) {
    skip_blanks();
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  /// Takes the word `word` if it is next and ends there.
  bool accept_word(std::string_view word) {
    if (peek() != word[0] || !rest().starts_with(word)) return false;
    if (is(at_[word.size()], kName)) return false;
    at_ += word.size();
    return true;
  }
  /// Takes `c` or fails with "expected …".
  bool expect(char c) {
    if (accept(c)) [[likely]]
      return true;
    fail_here(std::string("expected '") + c + "'");
    return false;
  }
  /// A name: letters, digits and . _ - $ : (a leading % is dropped). Fails when there is none.
  std::string_view name(std::string_view what) {
    skip_blanks();
    const char* const start = *at_ == '%' ? at_ + 1 : at_;
    const char* to = start;
    while (is(*to, kName)) ++to;
    if (to == start) [[unlikely]]
      return fail_here("expected " + std::string(what)), std::string_view();
    at_ = to;
    return std::string_view(start, static_cast<std::size_t>(to - start));
  }
  /// A word of letters, digits, '-' and '_'; empty when there is none.
  std::string_view word() {
    skip_blanks();
    const char* const start = at_;
    while (is(*at_, kWord)) ++at_;
    return std::string_view(start, static_cast<std::size_t>(at_ - start));
  }
  /// A number without sign that fits 64 bits, if it is next.
  std::optional<std::int64_t> number();

  /// Skips to the end of what the next bracket opens, and returns the whole, brackets included.
  /// Strings and comments are respected; in JSON, only strings.
  std::string_view balanced(bool json = false);
  /// A quoted string, quotes included. Fails when there is none.
  std::string_view string();
  /// The text of one attribute value: a string, a bracketed group, bare text, or these behind one
  /// another (replica_groups=[2,4]<=[8]T(1,0)), up to a comma or the end of the instruction.
  std::string_view attribute_value(bool json = false);

  std::size_t position() const { return static_cast<std::size_t>(at_ - text_.data()); }
  void move_to(std::size_t position) {
    if (!failed()) at_ = text_.data() + position;
  }
  /// Back to a piece that was read.
  void move_to(std::string_view piece) {
    move_to(static_cast<std::size_t>(piece.data() - text_.data()));
  }
  /// The text from the cursor on; behind its end stands a zero.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  void skip(std::size_t bytes) { at_ += bytes; }
  std::string_view since(std::size_t start) const {
    return std::string_view(text_).substr(start, position() - start);
  }

  /// Records a mistake at `position`, unless there is one already.
  void fail(std::size_t position, std::string text, std::string advice = "");
  /// The same at a piece that was read.
  void fail_at(std::string_view piece, std::string text, std::string advice = "") {
    fail(static_cast<std::size_t>(piece.data() - text_.data()), std::move(text), std::move(advice));
  }
  void fail_here(std::string text, std::string advice = "") {
    skip_blanks();
    fail(position(), std::move(text), std::move(advice));
  }

 private:
  void skip_blanks() {
    while (is(*at_, kBlank)) ++at_;
    if (*at_ == '/') [[unlikely]]
      skip_comments();
  }
  void skip_comments();
  /// Where the comment that starts at `at` ends; `at` when none does; null when it is not closed.
  const char* end_of_comment(const char* at) const;
  /// Behind the string that starts at `at`; null when it is not closed.
  const char* end_of_string(const char* at) const;
  /// Behind a name in single quotes; behind the quote where the line has no second.
  const char* end_of_quoted_name(const char* at) const;
  bool skip_group(bool json);
  bool is_cut_at(std::size_t position) const;

  const std::string& text_;
  std::string path_;
  const char* at_;
  const char* end_;
  std::optional<Error> error_;
};

}  // namespace spillway::hlo
