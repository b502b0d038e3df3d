// spillway log FILE [--hw P] [--json]
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "sim/report/log_report.h"

namespace spillway {
namespace {

struct LogOptions {
  std::string file;
  std::string hardware;
  bool json = false;
};

int run_log(const LogOptions& options, const Surroundings& surroundings) {
  LogWishes wishes;
  if (!options.hardware.empty()) {
    const Result<HardwareProfile> profile = find_profile(options.hardware, surroundings.profiles);
    if (!profile.ok()) return report(profile.error());
    wishes.hbm = profile->device.hbm_capacity.value;
    wishes.hbm_origin = "the HBM of " + profile->id;
  }
  const Result<log::Log> found = log::read_log(options.file);
  if (!found.ok()) return report(found.error());
  const LogReport result = make_log_report(*found, wishes);
  return answer(options.json ? render_json(result) : render_text(result));
}

}  // namespace

Runner add_log(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<LogOptions>();
  subcommand
      .add_option("FILE", options->file,
                  "log, error message, memory usage report or memory_analysis() (may be gzipped)")
      ->required();
  subcommand.add_option(
      "--hw", options->hardware,
      "machine, for the size of its HBM: a name of `spillway hw list`, or a file");
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.log/1");
  return [options, &surroundings] { return run_log(*options, surroundings); };
}

}  // namespace spillway
