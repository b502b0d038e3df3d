// Options about XLA's flags: --xla-flags and --xla-flags-env.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "model/flags/read_flags.h"

namespace CLI {
class Option;
}

namespace spillway {

/// As the command line has them.
struct FlagOptions {
  std::optional<std::string> text;  ///< as XLA_FLAGS has it; empty: not given
  bool from_environment = false;
};

/// An option whose argument is the text of flags; one that is "" was given all the same.
CLI::Option* add_text_option(CLI::App& subcommand, FlagOptions& options, const char* name,
                             const char* help);

void add_flag_options(CLI::App& subcommand, FlagOptions& options);

/// The user's flags; empty where neither option was given. An error: the text names a file that is
/// not there.
Result<std::optional<FlagText>> read_user_flags(const FlagOptions& options);
/// The text of them; empty where neither option was given.
std::string text_of(const FlagOptions& options);

}  // namespace spillway
