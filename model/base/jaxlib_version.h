// The version of jaxlib that compiled a program: XLA's behaviour changes with it.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace spillway {

/// "0.11.2", "0.12.0.1": up to four numbers, missing ones are 0.
struct JaxlibVersion {
  std::array<int, 4> numbers{};
  friend auto operator<=>(const JaxlibVersion&, const JaxlibVersion&) = default;
};

/// Reads a version; empty where the text is none. A suffix of letters ("0.11.0.dev20260801") is
/// left out.
std::optional<JaxlibVersion> parse_jaxlib_version(std::string_view text);

/// "0.11.2": without a fourth number where that is 0.
std::string to_string(const JaxlibVersion& version);

}  // namespace spillway
