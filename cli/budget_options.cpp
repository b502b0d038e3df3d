#include "cli/budget_options.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/percent_option.h"
#include "model/hardware/units_text.h"

namespace spillway {

void add_budget_options(CLI::App& subcommand, BudgetOptions& options) {
  subcommand.add_option("--hbm-limit", options.hbm_limit,
                        "what the step may allocate on a device: 60GiB");
  subcommand
      .add_option("--mem-fraction", options.fraction,
                  "the same as a share of the HBM; JAX's default is 0.75")
      ->check(CLI::Range(0.01, 1.0))
      ->excludes("--hbm-limit");
  subcommand.add_option("--fragmentation", options.margin,
                        "share of the pool that may be lost to holes between arrays: 2%");
  subcommand.add_option("--largest-block", options.block_limit,
                        "the largest block that the allocator can give in one piece: 40GiB");
  subcommand.add_option("--host-limit", options.host_limit, "pinned host memory a device: 200GiB");
  subcommand.add_option("--node-host-limit", options.node_host_limit,
                        "pinned host memory of all devices of a host together: 800GiB");
}

Result<BudgetWishes> read_wishes(const BudgetOptions& options) {
  BudgetWishes wishes;
  wishes.fraction = options.fraction;
  // CLI11's range lets it pass.
  if (options.fraction && std::isnan(*options.fraction))
    return Error{ErrorKind::kUsage, "--mem-fraction must be a number", {}, "", "for example 0.9"};
  const auto read = [](const char* option, const std::string& text,
                       std::optional<Bytes>& out) -> std::optional<Error> {
    if (text.empty()) return std::nullopt;
    const Result<Bytes> bytes = parse_units<Bytes>(text);
    if (bytes.ok() && *bytes > Bytes(0)) {
      out = *bytes;
      return std::nullopt;
    }
    const std::string why = bytes.ok() ? "must be above zero" : bytes.error().text;
    return Error{ErrorKind::kUsage,
                 std::string(option) + " '" + text + "' " + why,
                 {},
                 "",
                 "for example 60GiB"};
  };
  if (const auto wrong = read("--hbm-limit", options.hbm_limit, wishes.hbm_limit)) return *wrong;
  if (const auto wrong = read("--largest-block", options.block_limit, wishes.block_limit))
    return *wrong;
  if (const auto wrong = read("--host-limit", options.host_limit, wishes.host_limit)) return *wrong;
  if (const auto wrong = read("--node-host-limit", options.node_host_limit, wishes.node_host_limit))
    return *wrong;
  if (!options.margin.empty()) {
    const Result<double> percent = read_percent("--fragmentation", options.margin);
    if (!percent.ok()) return percent.error();
    if (*percent >= 100)
      return usage_error("--fragmentation " + options.margin + " leaves nothing of the pool",
                         "for example --fragmentation 2%");
    wishes.margin = *percent / 100;
  }
  return wishes;
}

}  // namespace spillway
