#include "calibration/import/read_source.h"

#include <algorithm>
#include <filesystem>

#include "calibration/import/bandwidth_test.h"
#include "calibration/import/doubts.h"
#include "calibration/import/nvidia_smi.h"
#include "calibration/import/perf_tables.h"
#include "calibration/import/possible.h"
#include "calibration/import/run_samples.h"
#include "calibration/read_probe.h"
#include "model/base/read_file.h"
#include "model/run/read_run.h"

namespace spillway::calibration {
namespace {

constexpr const char* kKinds =
    "readable are the JSON of spillway-probe, output of nvbandwidth (text, -j), bandwidthTest, "
    "nvidia-smi -q, c2c -s and topo -m, profiles of Nsight Systems and jax.profiler, and XLA's "
    "performance tables";

Result<Source> from_run(const std::string& path) {
  const Result<MeasuredRun> run = read_run(path);
  if (!run.ok()) return run.error();
  Result<Measurements> measurements = to_measurements(*run);
  if (!measurements.ok()) return measurements.error();
  return Source{path, std::move(measurements).value()};
}

bool is_binary(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool has(std::string_view text, const char* part) {
  return text.find(part) != std::string_view::npos;
}

/// C33: the wall time of device_put holds staging, host copies and Python.
bool is_device_put(std::string_view text) {
  return has(text, "device_put") && !has(text, "traceEvents");
}

bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
}

using Content = decltype(Source::content);

Result<Content> to_content(Result<Measurements> read) {
  if (!read.ok()) return read.error();
  return Content(std::move(read).value());
}

Result<Content> to_content(BandwidthRun run) {
  // Whether a test is complete does not depend on the number of GPUs.
  if (const auto read = to_measurements(run, std::nullopt); !read.ok()) return read.error();
  return Content(std::move(run));
}

Result<Content> read_text(const std::shared_ptr<const std::string>& bytes,
                          const std::string& path) {
  const std::string& text = *bytes;
  if (is_probe_json(text)) return to_content(read_probe(text, path));
  if (is_nvbandwidth_json(text)) {
    Result<BandwidthRun> run = read_nvbandwidth_json(text, path);
    if (!run.ok()) return run.error();
    return to_content(std::move(run).value());
  }
  if (is_nvbandwidth_text(text)) return to_content(read_nvbandwidth_text(text, path));
  if (is_bandwidth_test(text)) return to_content(read_bandwidth_test(text, path));
  if (is_nvidia_smi(text)) return to_content(read_nvidia_smi(text, path));
  if (is_device_put(text))
    return error_in_file(path, "measures device_put by wall time, which is not the link",
                         "a copy of the host's memory, staging buffers and Python are in it: 2.7 "
                         "where the link gives 25 GB/s; give copies timed by events, as "
                         "nvbandwidth and spillway-probe time them, or a profile of the run");
  if (is_perf_table(text)) return Content(PerfTable{bytes});
  return error_in_file(path, "no measurements of a kind that is known", kKinds);
}

Result<Measurements> measurements_of(const Source& source, const HardwareProfile& base,
                                     std::optional<int> gpus) {
  if (const auto* run = std::get_if<BandwidthRun>(&source.content))
    return to_measurements(*run, gpus);
  if (const auto* table = std::get_if<PerfTable>(&source.content))
    return read_perf_table(*table->text, source.path, base);
  return std::get<Measurements>(source.content);
}

/// An error where a file comes a second time, by whatever name.
std::optional<Error> find_twice(const std::vector<std::string>& paths) {
  for (std::size_t k = 0; k < paths.size(); ++k)
    for (std::size_t before = 0; before < k; ++before) {
      std::error_code failed;
      if (std::filesystem::equivalent(paths[before], paths[k], failed) && !failed)
        return usage_error(spillway::quoted(paths[k]) + " is the file that is read as " +
                               spillway::quoted(paths[before]),
                           "give each file once: its samples would count twice");
    }
  return std::nullopt;
}

}  // namespace

Result<Source> read_source(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return from_run(path);
  const Result<std::shared_ptr<const std::string>> bytes = read_file(path);
  if (!bytes.ok()) return from_run(path);  // a database may be larger than any text
  const std::string& text = **bytes;
  if (is_utf16(text))
    return error_in_file(path, "is text in UTF-16, and must be in UTF-8",
                         "convert it: iconv -f UTF-16 -t UTF-8 " + path + " > utf8.txt");
  if (is_binary(text) || has(text, "traceEvents") || has(text, "cost_us:")) return from_run(path);
  Result<Content> content = read_text(*bytes, path);
  if (!content.ok()) return content.error();
  return Source{path, std::move(content).value()};
}

Result<std::vector<Source>> read_sources(const std::vector<std::string>& paths) {
  if (const auto twice = find_twice(paths)) return *twice;
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    Result<Source> source = read_source(path);
    if (!source.ok()) return source.error();
    sources.push_back(std::move(source).value());
  }
  return sources;
}

std::string device_of(const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    if (const auto* run = std::get_if<BandwidthRun>(&source.content);
        run != nullptr && !run->devices.empty())
      return run->devices.front();
    if (const auto* read = std::get_if<Measurements>(&source.content);
        read != nullptr && !read->machine.device.empty())
      return read->machine.device;
  }
  return "";
}

Result<Measurements> to_measurements(const std::vector<Source>& sources,
                                     const HardwareProfile& base, std::optional<int> gpus) {
  const auto join = [&](std::optional<int> count) -> Result<Measurements> {
    Measurements all;
    for (const Source& source : sources) {
      Result<Measurements> more = measurements_of(source, base, count);
      if (more.ok()) more = only_possible(std::move(more).value(), source.path);
      if (!more.ok()) return more.error();
      append(all, std::move(more).value());
    }
    return all;
  };
  Result<Measurements> all = join(gpus);
  if (!all.ok()) return all.error();
  // What one source counts, the sums of another may need.
  if (!gpus && all->machine.gpus && std::ranges::any_of(all->skipped, &Skipped::needs_gpus))
    all = join(static_cast<int>(all->machine.gpus->value()));
  if (!all.ok()) return all.error();
  Measurements result = std::move(all).value();
  for (Warning& doubt : find_doubts(result, base)) result.warnings.push_back(std::move(doubt));
  return result;
}

}  // namespace spillway::calibration
