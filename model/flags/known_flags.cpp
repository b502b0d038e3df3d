#include "model/flags/known_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/check.h"
#include "model/flags/known_flag_rows.h"

namespace spillway {

std::string_view name_of(FlagType type) {
  switch (type) {
    case FlagType::kBool:
      return "true or false";
    case FlagType::kInt32:
    case FlagType::kInt64:
      return "a whole number";
    case FlagType::kNumber:
      return "a number";
    case FlagType::kText:
      return "text";
    case FlagType::kEnum:
      return "a name";
    case FlagType::kEnumList:
      return "names with commas between";
    case FlagType::kPairs:
      return "key=value with commas between";
  }
  return "";
}

std::span<const KnownFlag> known_flags() { return internal::kKnownFlags; }
std::span<const JaxlibVersion> probed_versions() { return internal::kProbedVersions; }

const KnownFlag* find_known_flag(std::string_view name) {
  const auto flags = known_flags();
  const auto found = std::ranges::lower_bound(flags, name, {}, &KnownFlag::name);
  return found == flags.end() || found->name != name ? nullptr : &*found;
}

Knows knows(const KnownFlag& flag, const JaxlibVersion& version) {
  const auto probed = probed_versions();
  check(version >= probed.front() && version <= probed.back(), "no parser of that age was asked");
  // The probed versions on either side; the same one where the version itself was probed.
  const auto above = std::ranges::lower_bound(probed, version) - probed.begin();
  const auto below = probed[static_cast<std::size_t>(above)] == version ? above : above - 1;
  const auto has = [&flag](std::ptrdiff_t at) { return flag.since <= at && at < flag.until; };
  if (has(below) != has(above)) return Knows::kUnsure;
  return has(below) ? Knows::kYes : Knows::kNo;
}

bool has_flag(const JaxlibVersion& version, std::string_view name) {
  const KnownFlag* const flag = find_known_flag(name);
  return flag != nullptr && knows(*flag, version) == Knows::kYes;
}

std::string life_of(const KnownFlag& flag) {
  const auto probed = probed_versions();
  if (flag.since >= probed.size()) return "before " + to_string(probed.front());
  const bool ended = flag.until < probed.size();
  const std::string last = ended ? to_string(probed[flag.until - std::size_t{1}]) : "";
  if (flag.since == 0) return ended ? "up to " + last : "always";
  const std::string first = to_string(probed[flag.since]);
  if (!ended) return "since " + first;
  return first == last ? first + " only" : first + " to " + last;
}

}  // namespace spillway
