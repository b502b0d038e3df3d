#include "calibration/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibration/fit/collective_fit.h"
#include "calibration/fit/figure_sheet.h"
#include "calibration/fit/gemm_fit.h"
#include "calibration/fit/kernel_fit.h"
#include "calibration/fit/link_fit.h"
#include "model/base/utf8.h"
#include "model/hardware/check_profile.h"

namespace spillway::calibration {
namespace {

/// "nvbandwidth v0.8, text; spillway-probe on NVIDIA H200, 2026-11-30".
std::string who_measured(const Measurements& measurements) {
  std::vector<std::string> formats;
  for (const SourceSummary& source : measurements.sources)
    if (std::ranges::find(formats, source.format) == formats.end())
      formats.push_back(source.format);
  std::string who;
  for (const std::string& format : formats) who += (who.empty() ? "" : "; ") + format;
  if (who.empty()) who = "samples";
  if (!measurements.machine.device.empty()) who += " on " + measurements.machine.device;
  if (!measurements.machine.date.empty()) who += ", " + measurements.machine.date;
  return who;
}

void warn_of_other_device(const MachineFacts& facts, Fit& fit) {
  const Device& device = fit.profile.device;
  if (!facts.device.empty() && !is_device(facts.device, device.xla_name))
    fit.warnings.push_back(
        {"other-device",
         fmt::format("the samples are of {}, the base profile of {}: what is not fitted is another "
                     "machine's",
                     quoted(facts.device), quoted(device.xla_name)),
         {}});
  if (facts.sm_count && *facts.sm_count != device.sm_count.value)
    fit.warnings.push_back(
        {"other-device",
         fmt::format("the device has {} multiprocessors, the base profile {}: another model, or a "
                     "part of it (MIG)",
                     facts.sm_count->value(), device.sm_count.value.value()),
         {}});
}

/// How the host is wired, as the samples' machine has it: what its GPUs share depends on it.
void take_topology(const MachineFacts& facts, FigureSheet& sheet, Fit& fit) {
  Host& host = fit.profile.host;
  const auto counted = [](std::optional<Count> count) -> Outcome {
    if (!count) return {};
    Estimate estimate;
    estimate.value = static_cast<double>(count->value());
    estimate.samples = 1;
    estimate.how = "the machine's topology";
    return {std::move(estimate), "", 1};
  };
  Outcome gpus = counted(facts.gpus_per_cpu), cpus = counted(facts.cpus);
  const std::int64_t usual = host.gpus_per_cpu.value.value() * host.cpus_per_host.value.value();
  if (gpus.estimate && facts.gpus && facts.gpus->value() < usual &&
      *facts.gpus_per_cpu < host.gpus_per_cpu.value) {
    gpus.estimate.reset();
    cpus = {};
    gpus.refusal = fmt::format(
        "{} of the base's {} GPUs are seen: the others may be hidden by a container, a scheduler "
        "or CUDA_VISIBLE_DEVICES",
        facts.gpus->value(), usual);
    fit.warnings.push_back({"hidden-gpus", gpus.refusal + "; the host stays as in the base", {}});
  }
  sheet.set("host.gpus_per_cpu", host.gpus_per_cpu, gpus);
  sheet.set("host.cpus_per_host", host.cpus_per_host, cpus);
}

/// What of the result cannot be, or is unusual, and was not so before.
void check_result(const HardwareProfile& base, Fit& fit) {
  const std::vector<Finding> before = check_profile(base);
  for (const Finding& finding : check_profile(fit.profile)) {
    if (std::ranges::find(before, finding) != before.end()) continue;
    const bool impossible = finding.severity == Finding::Severity::kError;
    fit.impossible = fit.impossible || impossible;
    fit.warnings.push_back(
        {impossible ? "cannot-be" : "unusual", finding.key + ": " + finding.text, {}});
  }
}

}  // namespace

Fit fit(const Measurements& measurements, const HardwareProfile& base, const FitOptions& options) {
  Fit result;
  result.profile = base;
  if (!options.id.empty()) result.profile.id = printable_line(options.id);
  if (!options.name.empty()) result.profile.name = printable_line(options.name);
  FigureSheet sheet(who_measured(measurements), result);
  warn_of_other_device(measurements.machine, result);
  fit_kernels(measurements, options, sheet, result);
  fit_gemms(measurements, options, sheet, result);
  take_topology(measurements.machine, sheet, result);
  fit_link(measurements, options, sheet, result);
  fit_collectives(measurements, options, sheet, result);
  fit_interference(measurements, options, sheet, result);
  check_result(base, result);
  return result;
}

}  // namespace spillway::calibration
