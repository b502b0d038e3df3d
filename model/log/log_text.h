// Lines of a log as a user pasted it, and the few numbers that XLA writes into them. No line has to
// be understood: readers look for words they know, wherever in the line these stand, so that time
// stamps and prefixes of launchers do not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace spillway::log {

using LineNumber = std::uint32_t;

struct Line {
  LineNumber number = 0;  ///< from 1
  std::string_view text;
};

/// Splits at line ends, and at "\n" written as two characters (messages inside a quoted string),
/// which share the number of their line. The lines refer to `text`.
std::vector<Line> split_lines(std::string_view text);

/// The text without the number that it ends with: where no line end follows, it may be half of one.
std::string_view without_half_number(std::string_view text);

/// A size as it was logged. "10.64GiB" stands for anything within `off_by` of `value`; what was
/// logged in bytes is exact.
struct LoggedBytes {
  Bytes value;
  Bytes off_by{0};
  bool exact() const { return off_by == Bytes(0); }
  friend bool operator==(const LoggedBytes&, const LoggedBytes&) = default;
};

/// Whether two logged sizes can be the same number.
bool may_be_equal(const LoggedBytes& a, const LoggedBytes& b);

/// What stands behind the first `words` in the line; empty when they are not there.
std::optional<std::string_view> behind(std::string_view line, std::string_view words);

/// Takes a size from the front of `rest`, blanks first: "10.64GiB", "496B", "123 bytes", "123".
/// Absent, and nothing taken, when there is none or it is above 1 EiB.
std::optional<LoggedBytes> take_bytes(std::string_view& rest);
/// The same, and where XLA repeats it exactly — "10.64GiB (11428802214 bytes)", "27.93GiB (rounded
/// to 29995136256)" — the exact one.
std::optional<LoggedBytes> take_exact_bytes(std::string_view& rest);
/// Takes a whole number, blanks first; absent when there is none or it does not fit.
std::optional<std::int64_t> take_integer(std::string_view& rest);
/// Takes letters, digits, '_', '.' and '-'; empty when there are none.
std::string_view take_word(std::string_view& rest);

/// For names out of a log: bytes that are no letters on a screen become '?', and after `most` bytes
/// it ends, between two letters.
std::string printable(std::string_view text, std::size_t most = 160);

std::string_view trimmed(std::string_view text);

}  // namespace spillway::log
