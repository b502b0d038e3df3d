// The names that XLA's parser of XLA_FLAGS knows, by version of jaxlib. XLA ends the process at a
// name that it does not know, so this is what decides whether a line of flags can run at all.
//
// Where it is from: the parser of each version in `probed_versions`, asked for every name that
// occurs in any of them (docs/flags.md). What a flag means is in flag_table.h, for those that
// matter here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/jaxlib_version.h"

namespace spillway {

enum class FlagType : std::uint8_t {
  kBool,
  kInt32,
  kInt64,
  kNumber,
  kText,
  kEnum,
  kEnumList,  ///< names with commas between, all of them or none with + or -
  kPairs,     ///< key=value with commas between
};
/// What a value looks like: "true or false", "a whole number", …
std::string_view name_of(FlagType type);

struct KnownFlag {
  std::string_view name;
  FlagType type;
  /// The first of the probed versions that knows it, and the first behind it that does not: indices
  /// into probed_versions(). Both are past the end for a name that only versions before all of
  /// them had.
  std::uint8_t since, until;
};

/// Sorted by name.
std::span<const KnownFlag> known_flags();
/// Null where no version had it.
const KnownFlag* find_known_flag(std::string_view name);

/// Versions of jaxlib whose parsers were asked, oldest first.
std::span<const JaxlibVersion> probed_versions();
inline JaxlibVersion oldest_probed() { return probed_versions().front(); }
inline JaxlibVersion newest_probed() { return probed_versions().back(); }

enum class Knows : std::uint8_t {
  kYes,
  kNo,
  kUnsure,  ///< between a version that does and one that does not
};
/// Whether a version's parser knows a flag; the version is not outside of those probed.
Knows knows(const KnownFlag& flag, const JaxlibVersion& version);
/// Whether a version, of those known, has a flag for certain.
bool has_flag(const JaxlibVersion& version, std::string_view name);

/// "since 0.8.3", "0.4.35 to 0.7.2", "before 0.4.31": as exact as the probed versions are.
std::string life_of(const KnownFlag& flag);

}  // namespace spillway
