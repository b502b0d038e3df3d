// The text of XLA_FLAGS, taken apart as XLA takes it apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/flags/profile_path.h"

namespace spillway {

/// One word of the text.
struct FlagUse {
  std::string name;                  ///< without the two dashes; with what stands in their place
  std::optional<std::string> value;  ///< what follows the first '=', quotes removed
  std::string word;                  ///< as it was written
};

struct FlagText {
  std::vector<FlagUse> uses;
  /// XLA reads up to the first word that does not begin with '-' and says nothing of the rest:
  ///   --xla_a=true \ --xla_b=1       reads xla_a alone
  ///   --xla_a = true --xla_b=1       reads "--xla_a"
  std::string unread;
  /// Of the profile that it names, where the file was looked at.
  std::optional<ProfileFault> profile_fault{};
};

/// Words are separated by blanks; a value in quotes may hold blanks, and after a double quote '\'
/// takes the next letter as it is. Source: ParseArgvFromString in xla/parse_flags_from_env.cc.
FlagText read_flags(std::string_view text);

/// The same, but text that does not begin with '-' is the name of a file that holds flags, as it is
/// to XLA; and a profile among them is looked at. An error: no such file.
Result<FlagText> read_flags_or_file(const std::string& text);

}  // namespace spillway
