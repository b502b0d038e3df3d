#include "cli/names_option.h"

#include <CLI/CLI.hpp>

namespace spillway {

void add_names_option(CLI::App& subcommand, std::string& path) {
  subcommand.add_option("--names", path, "names sidecar written by spillway.jax.names");
}

Result<NameList> load_names(const std::string& path) {
  return path.empty() ? NameList() : read_names(path);
}

}  // namespace spillway
