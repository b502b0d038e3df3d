// spillway flags [NAME…] [--check TEXT | --check-env] [--jaxlib V] [--hw P] [--json]
#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/flag_options.h"
#include "cli/jaxlib_option.h"
#include "model/flags/known_flags.h"
#include "sim/report/flags_report.h"

namespace spillway {
namespace {

struct FlagsCommandOptions {
  std::vector<std::string> names;
  FlagOptions flags;
  std::string jaxlib;
  std::string hardware;
  bool json = false;
};

int run_flags(const FlagsCommandOptions& options, const Surroundings& surroundings) {
  const auto jaxlib = read_jaxlib(options.jaxlib, newest_probed());
  if (!jaxlib.ok()) return report(jaxlib.error());
  FlagContext context{.jaxlib = **jaxlib};
  std::string hardware;
  if (!options.hardware.empty()) {
    const Result<HardwareProfile> profile = find_profile(options.hardware, surroundings.profiles);
    if (!profile.ok()) return report(profile.error());
    context.gpu = gpu_model(profile->device);
    hardware = profile->id;
  }
  const auto flags = read_user_flags(options.flags);
  if (!flags.ok()) return report(flags.error());
  const Result<FlagsReport> found =
      *flags ? make_flags_check(context, hardware, text_of(options.flags), **flags)
             : make_flags_report(context, hardware, options.names);
  if (!found.ok()) return report(found.error());
  const bool runs = !found->check || !has_error(found->check->findings);
  return answer(options.json ? render_json(*found) : render_text(*found),
                runs ? kDone : kAnswerIsNo);
}

}  // namespace

Runner add_flags(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<FlagsCommandOptions>();
  CLI::Option* names = subcommand.add_option("NAME", options->names,
                                             "only these flags, or those with this in their name");
  CLI::Option* check =
      add_text_option(subcommand, options->flags, "--check",
                      "text of XLA_FLAGS: exit with 1 when XLA would end the process at it");
  check->excludes(names);
  subcommand
      .add_flag("--check-env", options->flags.from_environment,
                "the same for the environment variable XLA_FLAGS")
      ->excludes(check)
      ->excludes(names);
  add_jaxlib_option(subcommand, options->jaxlib, "version of jaxlib; without it the newest known");
  subcommand.add_option("--hw", options->hardware,
                        "machine: an id of 'spillway hw list', or a YAML file");
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.flags/1");
  return [options, &surroundings] { return run_flags(*options, surroundings); };
}

}  // namespace spillway
