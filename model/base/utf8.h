// UTF-8, checked: what comes from a user's file need not be text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: what stands here is no UTF-8
};

/// The code point that `text`, which is not empty, starts with.
CodePoint decode_utf8(std::string_view text);

/// Whether a character moves the cursor, changes the terminal or the direction of writing.
bool disturbs_terminal(std::uint32_t character);

/// Lines of text with '?' for what would disturb a terminal, and for bytes that are no UTF-8.
std::string printable_lines(std::string_view text);
/// The same as one line: '?' for ends of lines too, such as a path may hold.
std::string printable_line(std::string_view text);

/// Whether all of `text` is well-formed.
bool is_utf8(std::string_view text);

}  // namespace spillway
