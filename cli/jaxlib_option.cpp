#include "cli/jaxlib_option.h"

#include <CLI/CLI.hpp>

namespace spillway {

void add_jaxlib_option(CLI::App& subcommand, std::string& jaxlib) {
  subcommand.add_option("--jaxlib", jaxlib,
                        "the version that compiled it, for example 0.12.0.1: XLA's rules differ");
}

Result<std::optional<JaxlibVersion>> read_jaxlib(const std::string& text) {
  if (text.empty()) return std::optional<JaxlibVersion>();
  const auto version = parse_jaxlib_version(text);
  if (!version)
    return Error{ErrorKind::kUsage,
                 "--jaxlib '" + text + "' is no version",
                 {},
                 "",
                 "for example --jaxlib 0.12.0.1"};
  return version;
}

}  // namespace spillway
