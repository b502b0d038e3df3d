// A broken promise inside Spillway stops the program: `check` names its line and exits with 70, in
// release builds too. What the user did wrong is not for `check` but for `Result` (result.h).
#pragma once

#include <string_view>

namespace spillway {

/// Prints "internal error: file:line: what" to stderr and exits with code 70.
[[noreturn]] void fail_check(std::string_view what, const char* file, int line);

/// Stops the program when `condition` does not hold. `file` and `line` are the caller's. (clang 14
/// has no std::source_location.)
inline void check(bool condition, std::string_view what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!condition) [[unlikely]] fail_check(what, file, line);
}

}  // namespace spillway
