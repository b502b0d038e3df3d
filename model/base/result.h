// What a reader returns: a value, or an error that points at the input and says what would be
// right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "model/base/check.h"

namespace spillway {

/// A place in a file. Line and column start at 1; absent where the error concerns the whole file.
struct SourceRef {
  std::string path;
  std::optional<std::uint32_t> line;
  std::optional<std::uint32_t> column;
};

/// Whose mistake it is decides the exit code of the program (house style, example 20).
enum class ErrorKind {
  kUsage,  ///< the command line: exit 2
  kInput,  ///< a file: exit 3
};

/// One clear message. `text` starts in lower case and has no full stop; `excerpt` is the input
/// line, of any length, or empty; `advice` says what would be right.
struct Error {
  ErrorKind kind = ErrorKind::kInput;
  std::string text;
  SourceRef where;
  std::string excerpt;
  std::string advice;
};

/// The message as a person reads it: "path:line:column: error: text", the line, a caret and advice.
/// Safe to print: of a long line only what stands around the column is shown, and control
/// characters and bytes that are no UTF-8 appear as '?'.
std::string to_text(const Error& error);

/// An error at byte `offset` of `content`, the text of `path`: line, column (in bytes) and the line
/// itself are worked out.
Error error_in_text(std::string path, std::string_view content, std::size_t offset,
                    std::string text, std::string advice = "");

/// An error about a file as a whole, or about a folder.
Error error_in_file(std::string path, std::string text, std::string advice = "");

/// An error of the command line.
Error usage_error(std::string text, std::string advice = "");

/// A name from the input as messages quote it: 'x', and no longer than a line.
std::string quoted(std::string_view name);

/// A value or an Error. Asking for the one that is not there is our bug, not the user's.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit, so `return value;` reads
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    check(ok(), "a result without a value was read");
    return std::get<0>(state_);
  }
  T&& value() && {
    check(ok(), "a result without a value was read");
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    check(!ok(), "a result without an error was asked for one");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

}  // namespace spillway
