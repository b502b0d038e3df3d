#include "cli/model_options.h"

#include <CLI/CLI.hpp>

#include "model/spec/read_step.h"

namespace spillway {

void add_model_options(CLI::App& subcommand, std::int64_t& devices, std::string& settings) {
  constexpr std::int64_t kMost = 1'000'000;
  subcommand.add_option("--devices", devices, "of a MODEL: how many devices it runs on")
      ->check(CLI::Range(std::int64_t{1}, kMost));
  subcommand.add_option("--settings", settings,
                        "of a config.json: the run's settings, a YAML in MaxText's keys");
}

Result<StepSpec> read_model_step(const std::string& path, const std::string& settings,
                                 std::int64_t devices) {
  if (devices < 1)
    return usage_error("a model's configuration does not say on how many devices it runs",
                       "for example --devices 8");
  return read_step({path, settings, devices});
}

}  // namespace spillway
