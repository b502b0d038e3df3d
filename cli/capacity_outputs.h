// Files that a capacity report is written to: --html, --csv, --sqlite and --markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "sim/report/capacity_report.h"

namespace spillway {

struct CapacityOutputs {
  std::string html, csv, sqlite, markdown;

  bool any() const { return !html.empty() || !csv.empty() || !sqlite.empty() || !markdown.empty(); }
};

void add_capacity_outputs(CLI::App& subcommand, CapacityOutputs& outputs);

/// Asks check_output of each.
ExitCode check_outputs(const CapacityOutputs& outputs, const std::vector<std::string>& inputs);

/// Returns kDone, or kNotWritten after saying why on stderr.
ExitCode write_capacity(const CapacityReport& report, const CapacityOutputs& outputs);

}  // namespace spillway
