#include "calibration/import/read_source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "calibration/import/bandwidth_test.h"
#include "calibration/import/doubts.h"
#include "calibration/import/nvbandwidth.h"
#include "calibration/import/nvidia_smi.h"
#include "calibration/import/perf_tables.h"
#include "calibration/import/run_samples.h"
#include "model/base/read_file.h"
#include "model/run/read_run.h"

namespace spillway::calibration {
namespace {

constexpr const char* kKinds =
    "readable are the JSON of spillway-probe, output of nvbandwidth (text, -j), bandwidthTest, "
    "nvidia-smi -q, c2c -s and topo -m, profiles of Nsight Systems and jax.profiler, and XLA's "
    "performance tables";

Result<Measurements> from_run(const std::string& path) {
  const Result<MeasuredRun> run = read_run(path);
  if (!run.ok()) return run.error();
  return to_measurements(*run);
}

bool is_binary(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool has(std::string_view text, const char* part) {
  return text.find(part) != std::string_view::npos;
}

/// C33: the wall time of device_put holds staging, host copies and Python.
bool is_device_put(std::string_view text) {
  return has(text, "device_put") && !has(text, "traceEvents");
}

Result<Measurements> read_text(std::string_view text, const std::string& path,
                               const HardwareProfile& base, const SourceOptions& options) {
  if (is_nvbandwidth_json(text)) {
    const Result<BandwidthRun> run = read_nvbandwidth_json(text, path);
    if (!run.ok()) return run.error();
    return to_measurements(*run, options.gpus);
  }
  if (is_nvbandwidth_text(text))
    return to_measurements(read_nvbandwidth_text(text, path), options.gpus);
  if (is_bandwidth_test(text)) return read_bandwidth_test(text, path);
  if (is_nvidia_smi(text)) return read_nvidia_smi(text, path);
  if (is_device_put(text))
    return error_in_file(path, "measures device_put by wall time, which is not the link",
                         "a copy of the host's memory, staging buffers and Python are in it: 2.7 "
                         "where the link gives 25 GB/s; give copies timed by events, as "
                         "nvbandwidth and spillway-probe time them, or a profile of the run");
  if (is_perf_table(text)) return read_perf_table(text, path, base);
  return error_in_file(path, "no measurements of a kind that is known", kKinds);
}

}  // namespace

Result<Measurements> read_source(const std::string& path, const HardwareProfile& base,
                                 const SourceOptions& options) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return from_run(path);
  const Result<std::shared_ptr<const std::string>> bytes = read_file(path);
  if (!bytes.ok()) return from_run(path);  // a database may be larger than any text
  const std::string& content = **bytes;
  if (is_binary(content) || has(content, "traceEvents") || has(content, "cost_us:"))
    return from_run(path);
  return read_text(content, path, base, options);
}

Result<Measurements> read_sources(const std::vector<std::string>& paths,
                                  const HardwareProfile& base, const SourceOptions& options) {
  const auto read_all = [&](const SourceOptions& with) -> Result<Measurements> {
    Measurements all;
    for (const std::string& path : paths) {
      Result<Measurements> more = read_source(path, base, with);
      if (!more.ok()) return more.error();
      append(all, std::move(more).value());
    }
    return all;
  };
  Result<Measurements> all = read_all(options);
  if (!all.ok()) return all.error();
  // What one source counts, the sums of another may need.
  const auto lacks_gpus = [](const Skipped& skipped) {
    return skipped.why.find("give --gpus") != std::string::npos;
  };
  if (!options.gpus && all->machine.gpus && std::ranges::any_of(all->skipped, lacks_gpus))
    all = read_all({.gpus = static_cast<int>(all->machine.gpus->value())});
  if (!all.ok()) return all.error();
  Measurements result = std::move(all).value();
  for (Warning& doubt : find_doubts(result, base)) result.warnings.push_back(std::move(doubt));
  return result;
}

}  // namespace spillway::calibration
