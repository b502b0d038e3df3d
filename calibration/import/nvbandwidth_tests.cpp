#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calibration/import/nvbandwidth.h"
#include "calibration/import/text_scan.h"
#include "model/base/format.h"

namespace spillway::calibration {
namespace {

/// Cells have two decimals or six digits; both show 0.01 GB/s of what a link carries.
constexpr BytesPerSecond kResolution{0.01e9};
/// Its default: far above what a start-up shows in, so that another size gives the same rate.
constexpr Bytes kBuffer{std::int64_t{512} << 20};

/// What a test measures, by its name.
struct Meaning {
  CopyDirection direction = CopyDirection::kHostToDevice;
  CopiedBy by = CopiedBy::kCopyEngine;
  bool both_ways = false;
  bool all_gpus = false;
};

std::optional<Meaning> meaning_of(std::string_view name) {
  Meaning meaning;
  const auto take = [&](std::string_view part) {
    if (!name.starts_with(part)) return false;
    name.remove_prefix(part.size());
    return true;
  };
  if (take("host_to_device")) {
  } else if (take("device_to_host")) {
    meaning.direction = CopyDirection::kDeviceToHost;
  } else if (take("host_to_all")) {
    meaning.all_gpus = true;
  } else if (take("all_to_host")) {
    meaning.direction = CopyDirection::kDeviceToHost;
    meaning.all_gpus = true;
  } else {
    return std::nullopt;
  }
  meaning.both_ways = take("_bidirectional");
  if (take("_memcpy_sm"))
    meaning.by = CopiedBy::kKernel;
  else if (!take("_memcpy_ce"))
    return std::nullopt;
  return name.empty() ? std::optional(meaning) : std::nullopt;
}

/// Of one HBM: bytes are counted once, a copy moves them twice.
std::optional<TrafficKernel> local_kernel(std::string_view name) {
  if (name == "device_local_copy" || name == "device_local_copy_sm") return TrafficKernel::kCopy;
  if (name == "device_local_read_sm") return TrafficKernel::kRead;
  if (name == "device_local_write_sm") return TrafficKernel::kWrite;
  return std::nullopt;
}

std::string why_not(std::string_view name) {
  if (name.find("latency") != std::string_view::npos)
    return "a latency of single loads: copies have another";
  if (name.starts_with("multinode")) return "between nodes: no host link";
  if (name.find("tma") != std::string_view::npos) return "copied by TMA, which XLA does not use";
  if (name.starts_with("device_to_device") || name.find("_to_one") != std::string_view::npos ||
      name.find("one_to_") != std::string_view::npos)
    return "between GPUs: collectives are fitted from their own tables";
  return "a test that is not known";
}

class SampleMaker {
 public:
  SampleMaker(const BandwidthRun& run, std::optional<int> gpus) : run_(run), gpus_(gpus) {
    if (!gpus_ && !run.devices.empty()) gpus_ = static_cast<int>(run.devices.size());
  }

  Result<Measurements> make() {
    for (const BandwidthTest& test : run_.tests) take(test);
    if (waived_ > 0)
      skip(fmt::format("{} waived test{}", waived_, waived_ == 1 ? "" : "s"),
           "nvbandwidth could not run them here, and does not say which", {});
    if (usable_ == 0)
      return error_in_file(run_.path, "no test of nvbandwidth in it is complete",
                           "run it again, and keep all of its output");
    describe();
    return std::move(result_);
  }

 private:
  SourceRef at(const BandwidthTest& test) const { return {run_.path, test.line, {}}; }
  void skip(std::string what, std::string why, SourceRef where, bool needs_gpus = false) {
    where.path = run_.path;
    result_.skipped.push_back({std::move(what), std::move(why), std::move(where), needs_gpus});
  }

  void take(const BandwidthTest& test) {
    switch (test.state) {
      case BandwidthTest::State::kWaived:
        if (test.name.empty())
          ++waived_;
        else
          skip(test.name, "waived: it cannot run on this machine", at(test));
        return;
      case BandwidthTest::State::kCut:
        result_.warnings.push_back(
            {"cut", quoted(test.name) + " is not complete and is left out", at(test)});
        return;
      case BandwidthTest::State::kFailed:
        result_.warnings.push_back(
            {"failed", quoted(test.name) + " failed and is left out: " + test.message, at(test)});
        return;
      case BandwidthTest::State::kComplete:
        break;
    }
    ++usable_;
    check_sum(test);
    if (const auto meaning = meaning_of(test.name))
      add_copies(test, *meaning);
    else if (const auto kernel = local_kernel(test.name))
      add_traffic(test, *kernel);
    else
      skip(test.name, why_not(test.name), at(test));
  }

  void check_sum(const BandwidthTest& test) {
    if (!test.sum || test.rows.empty() || test.name.starts_with("device_to_device")) return;
    double sum = 0;
    std::size_t cells = 0;
    for (const auto& row : test.rows)
      for (const auto& cell : row)
        if (cell) {
          sum += *cell;
          ++cells;
        }
    if (std::abs(sum - *test.sum) > 0.006 * static_cast<double>(cells) + 1e-4 * sum)
      result_.warnings.push_back(
          {"sum",
           fmt::format("the cells of {} add up to {:.2f}, its sum says {:.2f}", test.name, sum,
                       *test.sum),
           at(test)});
  }

  CopySample sample_of(const Meaning& meaning, const BandwidthTest& test, int columns) const {
    CopySample sample;
    sample.direction = meaning.direction;
    sample.by = meaning.by;
    sample.both_ways = meaning.both_ways;
    sample.gpus_at_once = meaning.all_gpus ? columns : 1;
    sample.regime = CopyRegime::kQueued;  // 16 copies behind a kernel that waits
    sample.memory = HostMemory::kNear;    // nvbandwidth binds its thread to the GPU's node
    sample.resolution = kResolution;
    sample.where = at(test);
    return sample;
  }

  void add_copies(const BandwidthTest& test, const Meaning& meaning) {
    if (test.rows.empty()) return add_sum(test, meaning);
    std::size_t columns = 0;
    for (const auto& row : test.rows) columns = std::max(columns, row.size());
    note_missing_columns(columns, test);
    for (std::size_t r = 0; r < test.rows.size(); ++r)
      for (std::size_t c = 0; c < test.rows[r].size(); ++c) {
        const auto& cell = test.rows[r][c];
        if (!cell || *cell <= 0) continue;
        CopySample sample = sample_of(meaning, test, static_cast<int>(columns));
        sample.gpu = static_cast<int>(c);
        sample.rate = BytesPerSecond(*cell * 1e9);
        if (test.rows.size() > 1) {
          // A row for each CPU: which one is near which GPU is not said.
          sample.numa_node = static_cast<int>(r);
          sample.memory = HostMemory::kUnknown;
        }
        result_.copies.push_back(sample);
      }
  }

  void add_sum(const BandwidthTest& test, const Meaning& meaning) {
    if (!test.sum || *test.sum <= 0) return;
    if (!gpus_ || *gpus_ < 1) {
      skip(test.name,
           "only the sum over all GPUs is printed, and how many there are is not known: "
           "give --gpus, or nvidia-smi topo -m beside it",
           at(test), true);
      return;
    }
    CopySample sample = sample_of(meaning, test, *gpus_);
    sample.rate = BytesPerSecond(*test.sum * 1e9 / *gpus_);
    result_.copies.push_back(sample);
    sums_ = true;
  }

  void add_traffic(const BandwidthTest& test, TrafficKernel kernel) {
    const int times = kernel == TrafficKernel::kCopy ? 2 : 1;
    const auto add = [&](double gigabytes) {
      TrafficSample sample;
      sample.kernel = kernel;
      sample.traffic = kBuffer * times;
      sample.time = sample.traffic / BytesPerSecond(gigabytes * times * 1e9);
      sample.where = at(test);
      result_.traffic.push_back(sample);
    };
    for (const auto& row : test.rows)
      for (const auto& cell : row)
        if (cell && *cell > 0) add(*cell);
    if (test.rows.empty() && test.sum && gpus_ && *gpus_ > 0) add(*test.sum / *gpus_);
  }

  /// C37: of eight GPUs a process sees one where some are cut by MIG.
  void note_missing_columns(std::size_t columns, const BandwidthTest& test) {
    if (told_columns_ || run_.devices.empty() || columns >= run_.devices.size()) return;
    told_columns_ = true;
    result_.warnings.push_back(
        {"mig",
         fmt::format("{} of {} GPUs have a column: the others are hidden, by MIG or by "
                     "CUDA_VISIBLE_DEVICES",
                     columns, run_.devices.size()),
         at(test)});
  }

  void describe() {
    result_.warnings.insert(result_.warnings.begin(), run_.warnings.begin(), run_.warnings.end());
    MachineFacts& machine = result_.machine;
    if (!run_.devices.empty()) {
      machine.device = run_.devices.front();
      machine.gpus = Count(static_cast<std::int64_t>(run_.devices.size()));
    }
    machine.driver = run_.driver;
    machine.cuda = run_.cuda;
    for (const std::string& device : run_.devices)
      if (device.find("MIG") != std::string::npos) machine.mig = true;
    std::string read = fmt::format("{} copies of {} tests", result_.copies.size(), usable_);
    if (sums_) read += fmt::format(", sums shared out among {} GPUs", *gpus_);
    read += "; the size of the buffers is not said (by default 512 MiB, 64 MiB in v0.2)";
    result_.sources.push_back(
        {run_.path,
         "nvbandwidth" + (run_.version.empty() ? "" : " " + run_.version) + ", " + run_.format,
         read});
  }

  const BandwidthRun& run_;
  std::optional<int> gpus_;
  Measurements result_;
  std::size_t waived_ = 0, usable_ = 0;
  bool told_columns_ = false, sums_ = false;
};

}  // namespace

Result<Measurements> to_measurements(const BandwidthRun& run, std::optional<int> gpus) {
  return SampleMaker(run, gpus).make();
}

}  // namespace spillway::calibration
