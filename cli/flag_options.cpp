#include "cli/flag_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace spillway {

CLI::Option* add_text_option(CLI::App& subcommand, FlagOptions& options, const char* name,
                             const char* help) {
  return subcommand.add_option_function<std::string>(
      name, [&options](const std::string& text) { options.text = text; }, help);
}

void add_flag_options(CLI::App& subcommand, FlagOptions& options) {
  CLI::Option* text = add_text_option(subcommand, options, "--xla-flags",
                                      "your XLA_FLAGS: what is wrong with them is said too");
  subcommand
      .add_flag("--xla-flags-env", options.from_environment,
                "the same, from the environment variable XLA_FLAGS")
      ->excludes(text);
}

std::string text_of(const FlagOptions& options) {
  if (!options.from_environment) return options.text.value_or("");
  const char* const set = std::getenv("XLA_FLAGS");
  return set == nullptr ? "" : set;
}

Result<std::optional<FlagText>> read_user_flags(const FlagOptions& options) {
  if (!options.text && !options.from_environment) return std::optional<FlagText>();
  Result<FlagText> flags = read_flags_or_file(text_of(options));
  if (!flags.ok()) return flags.error();
  return std::optional<FlagText>(std::move(flags).value());
}

}  // namespace spillway
