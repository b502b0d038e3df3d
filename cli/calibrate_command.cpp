// spillway calibrate --from FILE... [--base P] [--gpus N] [--id ID] [--name NAME] [--out
// profile.yaml]
//                    [--plot plot.svg] [--json]
#include <CLI/CLI.hpp>
#include <cstdio>
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

struct CalibrateOptions {
  std::vector<std::string> from;
  std::string base, id, name, out, plot;
  int gpus = 0;
  bool json = false;
};

/// "NVIDIA H200" is the device of XLA's "NVIDIA H200 141GB HBM3e".
bool is_device(const std::string& measured, const HardwareProfile& profile) {
  const std::string& xla = profile.device.xla_name;
  return !measured.empty() && (xla.starts_with(measured) || measured.starts_with(xla));
}

/// Without --base: the machine with the device that the files name.
Result<HardwareProfile> find_base(const CalibrateOptions& options,
                                  const Surroundings& surroundings) {
  if (!options.base.empty()) return find_profile(options.base, surroundings.profiles);
  std::string device;
  std::vector<HardwareProfile> profiles;
  for (const ProfileEntry& entry : list_profiles(surroundings.profiles))
    if (Result<HardwareProfile> profile = read_profile(entry.path); profile.ok())
      profiles.push_back(std::move(profile).value());
  for (const std::string& path : options.from) {
    if (profiles.empty()) break;
    const Result<Measurements> read = calibration::read_source(path, profiles.front());
    if (!read.ok()) continue;
    if (device.empty()) device = read->machine.device;
  }
  for (HardwareProfile& profile : profiles)
    if (is_device(device, profile)) return std::move(profile);
  return usage_error(device.empty()
                         ? "the files do not say which machine was measured"
                         : "no machine is known with the device " + spillway::quoted(device),
                     "give the one that comes nearest: --base h100 (spillway hw list)");
}

ExitCode write_results(const CalibrateOptions& options, const Calibration& calibration) {
  if (!options.out.empty()) {
    const std::string yaml = to_yaml(calibration.fit.profile, calibrate_comment(calibration));
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
  if (const auto wrong = overwrites_input("--out", options.out, inputs)) return report(*wrong);
  if (const auto wrong = overwrites_input("--plot", options.plot, inputs)) return report(*wrong);
  Result<HardwareProfile> base = find_base(options, surroundings);
  if (!base.ok()) return report(base.error());
  calibration::SourceOptions reading;
  if (options.gpus > 0) reading.gpus = options.gpus;
  Result<Measurements> measurements = calibration::read_sources(options.from, *base, reading);
  if (!measurements.ok()) return report(measurements.error());
  calibration::Fit fit =
      calibration::fit(*measurements, *base, {.id = options.id, .name = options.name});
  const Calibration result{std::move(base).value(), std::move(measurements).value(),
                           std::move(fit)};
  const bool fitted = has_fitted(result);
  if (fitted)
    if (const ExitCode written = write_results(options, result); written != kDone) return written;
  return answer(options.json ? calibrate_json(result) : calibrate_text(result),
                fitted ? kDone : kAnswerIsNo);
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
