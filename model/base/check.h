// A broken promise inside Spillway stops the program: `check` names its line and exits with 70, in
// release builds too. What the user did wrong is not for `check` but for `Result` (result.h).
#pragma once

#include <source_location>
#include <string_view>

namespace spillway {

/// Prints "internal error: file:line: what" to stderr and exits with code 70.
[[noreturn]] void fail_check(std::string_view what, std::source_location where);

/// Stops the program when `condition` does not hold.
inline void check(bool condition, std::string_view what,
                  std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    fail_check(what, where);
}

}  // namespace spillway
