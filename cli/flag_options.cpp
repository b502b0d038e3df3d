#include "cli/flag_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace spillway {

void add_flag_options(CLI::App& subcommand, FlagOptions& options) {
  CLI::Option* text = subcommand.add_option("--xla-flags", options.text,
                                            "your XLA_FLAGS: what is wrong with them is said too");
  subcommand
      .add_flag("--xla-flags-env", options.from_environment,
                "the same, from the environment variable XLA_FLAGS")
      ->excludes(text);
}

std::string text_of(const FlagOptions& options) {
  if (!options.from_environment) return options.text;
  const char* const set = std::getenv("XLA_FLAGS");
  return set == nullptr ? "" : set;
}

Result<std::optional<FlagText>> read_user_flags(const FlagOptions& options) {
  if (options.text.empty() && !options.from_environment) return std::optional<FlagText>();
  Result<FlagText> flags = read_flags_or_file(text_of(options));
  if (!flags.ok()) return flags.error();
  return std::optional<FlagText>(std::move(flags).value());
}

}  // namespace spillway
