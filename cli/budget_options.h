// Options that say what a plan may use: --hbm-limit, --mem-fraction, --fragmentation,
// --largest-block, --host-limit and --node-host-limit.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "model/plan/budget.h"

namespace spillway {

/// As the command line has them; sizes with their unit.
struct BudgetOptions {
  std::string hbm_limit, block_limit, host_limit, node_host_limit;
  std::string margin;  ///< in percent
  std::optional<double> fraction;
};

void add_budget_options(CLI::App& subcommand, BudgetOptions& options);

/// Reads the sizes the user wrote; empty text is no wish.
Result<BudgetWishes> read_wishes(const BudgetOptions& options);

}  // namespace spillway
