// A place in HLO text, and the few moves a reader makes. Nothing is copied: what is read are views
// into the text.
//
// Every move skips blanks and comments in front. The first mistake is kept and all later moves
// fail, so that a reader may check once, at the end of a phrase.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/base/result.h"

namespace spillway::hlo {

class Cursor {
 public:
  Cursor(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  bool at_end() {
    skip_blanks();
    return at_ >= text_.size();
  }
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  /// The next character without taking it; '\0' at the end.
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// Takes `c` if it is next.
  bool accept(char c) {
    if (peek() != c || failed()) return false;
    ++at_;
    return true;
  }
  /// Takes `token` if it is next.
  bool accept(std::string_view token) {
    skip_blanks();
    if (failed() || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  /// Takes the word `word` if it is next and ends there.
  bool accept_word(std::string_view word);
  /// Takes `c` or fails with "expected …".
  bool expect(char c);
  /// A name: letters, digits and . _ - $ : (a leading % is dropped). Fails when there is none.
  std::string_view name(std::string_view what);
  /// A word of letters, digits, '-' and '_'.
  std::string_view word();
  /// An unsigned number that fits 64 bits.
  std::optional<std::int64_t> number();

  /// Skips to the end of what the next bracket opens, strings respected, and returns the whole,
  /// brackets included.
  std::string_view balanced();
  /// The text of one attribute value: a string, a bracketed group, bare text, or these behind one
  /// another (replica_groups=[2,4]<=[8]T(1,0)), up to a comma or the end of the instruction.
  std::string_view attribute_value();

  std::size_t position() const { return at_; }
  void move_to(std::size_t position) { at_ = position; }
  std::string_view text() const { return text_; }
  std::string_view since(std::size_t start) const { return text_.substr(start, at_ - start); }

  /// Records a mistake at `position`, unless there is one already.
  void fail(std::size_t position, std::string text, std::string advice = "");
  void fail_here(std::string text, std::string advice = "") {
    skip_blanks();
    fail(at_, std::move(text), std::move(advice));
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && at_ + 1 < text_.size() && skip_comment()) {
        continue;
      } else {
        return;
      }
    }
  }
  bool skip_comment();
  void skip_string();

  std::string_view text_;
  std::string path_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace spillway::hlo
