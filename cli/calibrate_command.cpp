// spillway calibrate --from FILE... [--base P] [--gpus N] [--id ID] [--name NAME] [--out
// profile.yaml]
//                    [--plot plot.svg] [--json]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "calibration/import/read_source.h"
#include "calibration/report/rate_plot.h"
#include "cli/calibrate_text.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "model/base/utf8.h"
#include "model/hardware/read_profile.h"
#include "model/hardware/write_profile.h"

namespace spillway {
namespace {

using calibration::Measurements;
using calibration::Source;

struct CalibrateOptions {
  std::vector<std::string> from;
  std::string base, id, name, out, plot;
  int gpus = 0;
  bool json = false;
};

/// Without --base: the machine with the device that the files name.
Result<HardwareProfile> find_base(const CalibrateOptions& options,
                                  const std::vector<Source>& sources,
                                  const Surroundings& surroundings) {
  if (!options.base.empty()) return find_profile(options.base, surroundings.profiles);
  const std::string device = calibration::device_of(sources);
  for (const ProfileEntry& entry : list_profiles(surroundings.profiles))
    if (Result<HardwareProfile> profile = read_profile(entry.path);
        profile.ok() && calibration::is_device(device, profile->device.xla_name))
      return profile;
  return usage_error(device.empty()
                         ? "the files do not say which machine was measured"
                         : "no machine is known with the device " + spillway::quoted(device),
                     "give the one that comes nearest: --base h100 (spillway hw list)");
}

/// Of files that the command writes, by whatever name.
std::optional<Error> overwrites_itself(const CalibrateOptions& options) {
  std::error_code none;
  if (options.out.empty() || options.plot.empty() ||
      std::filesystem::weakly_canonical(options.out, none) !=
          std::filesystem::weakly_canonical(options.plot, none))
    return std::nullopt;
  return usage_error("--out and --plot are one file, " + spillway::quoted(options.out),
                     "give the picture another name");
}

/// The machine as a file. An error: one that no command could read.
Result<std::string> readable_yaml(const Calibration& calibration) {
  std::string yaml = to_yaml(calibration.fit.profile, calibrate_comment(calibration));
  const Result<HardwareProfile> back = parse_profile(yaml, "");
  if (back.ok()) return yaml;
  std::string line = back.error().excerpt;
  line.erase(0, line.find_first_not_of(' '));
  return Error{ErrorKind::kInput,
               "what was fitted is no machine, and nothing is written: " + back.error().text +
                   (line.empty() ? "" : ", in " + spillway::quoted(line)),
               {},
               "",
               "is one of the files of another machine, or not as its tool wrote it?"};
}

ExitCode write_results(const CalibrateOptions& options, const Calibration& calibration,
                       const std::string& yaml) {
  if (calibration.fit.impossible) {
    for (const std::string& path : {options.out, options.plot})
      if (!path.empty())
        std::fprintf(stderr, "%s: not written: such a machine cannot be, see the warnings\n",
                     printable_line(path).c_str());
    return kAnswerIsNo;
  }
  if (!options.out.empty()) {
    if (const ExitCode written = write_output(options.out, yaml); written != kDone) return written;
    std::fprintf(stderr, "%s: the machine, for --hw\n", printable_line(options.out).c_str());
  }
  if (!options.plot.empty()) {
    const std::string svg = calibration::to_svg(calibration.fit, calibration.base.id);
    if (const ExitCode written = write_output(options.plot, svg); written != kDone) return written;
    std::fprintf(stderr, "%s: a picture of it\n", printable_line(options.plot).c_str());
  }
  return kDone;
}

int run_calibrate(const CalibrateOptions& options, const Surroundings& surroundings) {
  std::vector<std::string> inputs = options.from;
  inputs.push_back(options.base);
  if (const ExitCode code = check_output("--out", options.out, inputs); code != kDone) return code;
  if (const ExitCode code = check_output("--plot", options.plot, inputs); code != kDone)
    return code;
  if (const auto wrong = overwrites_itself(options)) return report(*wrong);
  const Result<std::vector<Source>> sources = calibration::read_sources(options.from);
  if (!sources.ok()) return report(sources.error());
  Result<HardwareProfile> base = find_base(options, *sources, surroundings);
  if (!base.ok()) return report(base.error());
  const std::optional<int> gpus = options.gpus > 0 ? std::optional(options.gpus) : std::nullopt;
  Result<Measurements> measurements = calibration::to_measurements(*sources, *base, gpus);
  if (!measurements.ok()) return report(measurements.error());
  calibration::Fit fit =
      calibration::fit(*measurements, *base, {.id = options.id, .name = options.name});
  const Calibration result{std::move(base).value(), std::move(measurements).value(),
                           std::move(fit)};
  ExitCode done = kAnswerIsNo;
  if (has_fitted(result)) {
    const Result<std::string> yaml = readable_yaml(result);
    if (!yaml.ok()) return report(yaml.error());
    done = write_results(options, result, *yaml);
    if (done == kNotWritten) return done;
  }
  return answer(options.json ? calibrate_json(result) : calibrate_text(result), done);
}

}  // namespace

Runner add_calibrate(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<CalibrateOptions>();
  subcommand
      .add_option("--from", options->from,
                  "measurements of any kind, several: the probe's JSON, nvbandwidth, nvidia-smi, "
                  "profiles of runs, XLA's performance tables")
      ->required();
  subcommand.add_option("--base", options->base,
                        "machine that lends what was not measured: an id of 'spillway hw list', or "
                        "a YAML file; by default that of the measured device");
  subcommand
      .add_option("--gpus", options->gpus,
                  "GPUs of the host, for files that only say what all of them did together")
      ->check(CLI::Range(1, 1024));
  subcommand.add_option("--id", options->id, "id of the new machine, by default the base's");
  subcommand.add_option("--name", options->name, "its name, by default the base's");
  subcommand.add_option("--out", options->out, "writes the machine: a YAML file for --hw");
  subcommand.add_option("--plot", options->plot,
                        "writes a picture: measured, fitted and before, as SVG");
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.calibrate/1");
  return [options, &surroundings] { return run_calibrate(*options, surroundings); };
}

}  // namespace spillway
