#include "cli/jaxlib_option.h"

#include <CLI/CLI.hpp>

#include "model/flags/check_flags.h"

namespace spillway {

void add_jaxlib_option(CLI::App& subcommand, std::string& jaxlib, const char* help) {
  subcommand.add_option("--jaxlib", jaxlib, help);
}

Result<std::optional<JaxlibVersion>> read_jaxlib(const std::string& text,
                                                 const std::optional<JaxlibVersion>& fallback) {
  if (text.empty()) return fallback;
  const auto version = parse_jaxlib_version(text);
  if (!version)
    return Error{ErrorKind::kUsage,
                 "--jaxlib '" + text + "' is no version",
                 {},
                 "",
                 "for example --jaxlib 0.12.0.1"};
  if (auto unknown = check_version(*version)) return *unknown;
  return version;
}

}  // namespace spillway
