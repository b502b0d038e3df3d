// The flags and environment variables of XLA that bear on offloading, scheduling and memory: what
// they do, what they cost, and what they are where nobody sets them. All names that XLA knows, with
// the versions that know them, are in known_flags.h.
//
// Where it is from: defaults from the compile options of each probed version of jaxlib; "stable"
// where the flag's own description in 0.12.0.1 says so; meaning and cost from XLA's sources and
// from programs compiled with and without the flag (docs/flags.md).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/jaxlib_version.h"

namespace spillway {

/// A default, from a version of jaxlib on.
struct FlagDefault {
  JaxlibVersion since;
  const char* value = nullptr;  ///< null: no further one
};

struct FlagInfo {
  std::string_view topic;
  std::string_view name;
  bool is_stable = false;  ///< else experimental: may go with any version
  /// Oldest first. The first is that of the flag's own first version.
  std::array<FlagDefault, 3> defaults{};
  std::string_view meaning, cost;
  /// For a flag whose value is one of a set: those XLA takes, in any case of letters.
  std::string_view values = {};
};

/// By topic.
std::span<const FlagInfo> flag_table();
const FlagInfo* find_flag(std::string_view name);
/// What XLA takes where nobody sets the flag.
std::string_view default_of(const FlagInfo& flag, const JaxlibVersion& version);

/// A flag that is gone, and what does its work now.
struct GoneFlag {
  std::string_view name, instead;
};
/// Null where nothing is known to do its work.
const GoneFlag* find_gone_flag(std::string_view name);

struct EnvironmentInfo {
  std::string_view name, fallback, meaning, cost;
};
std::span<const EnvironmentInfo> environment_table();

}  // namespace spillway
