#include "calibration/import/run_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "model/base/format.h"

namespace spillway::calibration {
namespace {

/// Of a step's copies the same ones come again and again: more say nothing new, and a fit of
/// millions would never end.
constexpr std::size_t kMostOfOneKind = 200;
/// Less than this share of a copy's time is as good as none, and all but it as good as all.
constexpr double kApart = 0.1;

HostPages pages_of(const MeasuredCopy& copy) {
  const MemoryPlace host = copy.kind == CopyKind::kHostToDevice ? copy.from : copy.to;
  switch (host) {
    case MemoryPlace::kPinned:
      return HostPages::kPinned;
    case MemoryPlace::kPageable:
      return HostPages::kPageable;
    case MemoryPlace::kManaged:
      return HostPages::kManaged;
    default:
      return HostPages::kUnknown;
  }
}

std::string rate_text(const CopyGroup& group) {
  return fmt::format("{} copies {}, {} to {}, {} at {:.2f} GB/s", format_count(group.count),
                     name_of(group.kind), name_of(group.from), name_of(group.to),
                     format_bytes(group.bytes), group.rate().value() / 1e9);
}

/// Copies of one direction, kind of memory and size: the same one in every step, most often.
using SizeKey = std::tuple<CopyKind, HostPages, std::int64_t>;

CopySample sample_of(const MeasuredCopy& copy, const std::string& path) {
  CopySample sample;
  sample.direction = copy.kind == CopyKind::kHostToDevice ? CopyDirection::kHostToDevice
                                                          : CopyDirection::kDeviceToHost;
  sample.pages = pages_of(copy);
  sample.regime = CopyRegime::kOwn;
  sample.bytes = copy.bytes;
  sample.rate = BytesPerSecond(static_cast<double>(copy.bytes.value()) / copy.time.value());
  sample.gpu = static_cast<int>(copy.device);
  sample.both_ways = copy.beside_opposite > copy.time * (1 - kApart);
  const bool beside_kernels = copy.beside_kernels > copy.time * kApart;
  sample.beside = beside_kernels ? Beside::kUnknownWork : Beside::kNothing;
  sample.where = {path, {}, {}};
  return sample;
}

/// The fastest tenth of each size shows the link even where kernels ran beside all of them: these
/// slow a copy, and never speed it up.
std::size_t take_fastest(std::vector<CopySample>& samples) {
  const auto is_plain = [](const CopySample& s) { return s.beside == Beside::kNothing; };
  if (std::ranges::any_of(samples, is_plain)) return 0;
  std::ranges::stable_sort(samples, std::ranges::greater{}, &CopySample::rate);
  const std::size_t fastest = (samples.size() + 9) / 10;
  for (std::size_t k = 0; k < fastest; ++k) samples[k].beside = Beside::kNothing;
  return fastest;
}

}  // namespace

Result<Measurements> to_measurements(const MeasuredRun& run) {
  Measurements result;
  result.machine.device = run.device;
  std::map<SizeKey, std::vector<CopySample>> by_size;
  std::size_t repeated = 0, without_size = 0, partly_both_ways = 0;
  for (const MeasuredCopy& copy : run.copies) {
    if (copy.kind != CopyKind::kHostToDevice && copy.kind != CopyKind::kDeviceToHost) continue;
    if (copy.bytes <= Bytes(0) || copy.time <= Seconds(0)) {
      ++without_size;
      continue;
    }
    const bool begins = copy.beside_opposite > copy.time * kApart;
    if (begins && copy.beside_opposite < copy.time * (1 - kApart)) {
      ++partly_both_ways;
      continue;
    }
    auto& samples = by_size[{copy.kind, pages_of(copy), copy.bytes.value()}];
    if (samples.size() < kMostOfOneKind)
      samples.push_back(sample_of(copy, run.path));
    else
      ++repeated;
  }
  std::size_t fastest = 0;
  for (auto& [size, samples] : by_size) {
    fastest += take_fastest(samples);
    result.copies.insert(result.copies.end(), samples.begin(), samples.end());
  }
  if (fastest > 0)
    result.warnings.push_back(
        {"beside-kernels",
         fmt::format("of sizes that were only copied beside kernels the fastest tenth counts, {} "
                     "copies: their rate is at most the link's",
                     fastest),
         {run.path, {}, {}}});
  if (partly_both_ways > 0)
    result.skipped.push_back({fmt::format("{} copies", partly_both_ways),
                              "the other direction was busy for a part of their time",
                              {run.path, {}, {}}});
  std::string read = fmt::format("{} copies across the link", result.copies.size());
  if (repeated > 0) read += fmt::format(", {} more of the same sizes not needed", repeated);
  for (const CopyGroup& group : group_copies(run)) {
    if (group.kind != CopyKind::kHostToDevice && group.kind != CopyKind::kDeviceToHost) continue;
    if (group.time <= Seconds(0) || group.bytes <= Bytes(0)) continue;
    read += "; " + rate_text(group);
    if (group.from == MemoryPlace::kPageable || group.to == MemoryPlace::kPageable)
      result.warnings.push_back(
          {"pageable",
           rate_text(group) + ": the driver stages them, and the host waits; they do not count "
                              "for the link. XLA's own buffers in host memory are pinned, arrays "
                              "of device_put and numpy are not",
           {run.path, {}, {}}});
  }
  for (const RunNote& note : run.notes)
    result.skipped.push_back({note.missing, note.consequence, {run.path, {}, {}}});
  if (without_size > 0)
    result.skipped.push_back({format_count(static_cast<std::int64_t>(without_size)) + " copies",
                              "without a size or a time",
                              {run.path, {}, {}}});
  if (result.copies.empty())
    return error_in_file(run.path,
                         run.format == RunFormat::kPgle
                             ? "is a PGLE profile, which has no copies: nothing to calibrate from"
                             : "the run has no copy across the host link",
                         "profile a step that offloads; simulate --profile compares the rest");
  result.sources.push_back({run.path, std::string(name_of(run.format)), read});
  return result;
}

}  // namespace spillway::calibration
