// XLA's …-live-range.txt: the flattened schedule, and from when to when each value lives.
#pragma once

#include <doctest/doctest.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/read_file.h"

namespace spillway::testing {

/// Positions in `sequence`, both ends inclusive; one past the last stands for "when all is over".
struct TrueRange {
  std::string value;  ///< "loop.3{2}", "x{}"
  std::size_t start = 0, end = 0;
};

struct TrueLiveRanges {
  std::vector<std::string> sequence;  ///< instructions in order of execution
  std::vector<TrueRange> ranges;
  std::size_t peak = 0;  ///< where XLA believes that most is live
};

inline std::size_t parse_position(std::string_view digits) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  CHECK(error == std::errc());
  CHECK(end == digits.data() + digits.size());
  return number;
}

/// Reads what stands in such a file up to the list at the peak; fails the running test where a line
/// is not as expected.
inline TrueLiveRanges parse_live_ranges(std::string_view text) {
  TrueLiveRanges truth;
  bool in_ranges = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    constexpr std::string_view kPeak = "  Live ranges at ";
    if (line.starts_with(kPeak)) {
      truth.peak = parse_position(line.substr(kPeak.size(), line.find(" (") - kPeak.size()));
      break;
    }
    if (line == "  BufferLiveRange:") in_ranges = true;
    if (!line.starts_with("    ")) continue;
    line.remove_prefix(4);
    const std::size_t colon = in_ranges ? line.rfind(':') : line.find(':');
    REQUIRE(colon != std::string_view::npos);
    if (!in_ranges) {  // "17:copy.195"
      CHECK(parse_position(line.substr(0, colon)) == truth.sequence.size());
      truth.sequence.emplace_back(line.substr(colon + 1));
      continue;
    }
    const std::string_view ends = line.substr(colon + 1);  // of "all-gather.66{}:5-142"
    const std::size_t dash = ends.find('-');
    REQUIRE(dash != std::string_view::npos);
    truth.ranges.push_back({std::string(line.substr(0, colon)),
                            parse_position(ends.substr(0, dash)),
                            parse_position(ends.substr(dash + 1))});
  }
  return truth;
}

inline TrueLiveRanges read_live_ranges(const std::string& path) {
  const auto text = read_file(path);
  if (!text.ok()) FAIL(to_text(text.error()));
  return parse_live_ranges(**text);
}

}  // namespace spillway::testing
