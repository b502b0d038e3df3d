#include "cli/program_argument.h"

#include <CLI/CLI.hpp>

namespace spillway {

void add_program_argument(CLI::App& subcommand, std::string& path) {
  subcommand
      .add_option("PROGRAM", path,
                  "XLA dump folder, or optimised HLO as text or proto (may be gzipped)")
      ->required();
}

}  // namespace spillway
