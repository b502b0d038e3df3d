#include "cli/budget_options.h"

#include <CLI/CLI.hpp>
#include <cmath>

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
  subcommand.add_option("--host-limit", options.host_limit, "pinned host memory a device: 200GiB");
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
  if (const auto wrong = read("--host-limit", options.host_limit, wishes.host_limit)) return *wrong;
  return wishes;
}

}  // namespace spillway
