#include "model/run/gpu_events.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/base/format.h"
#include "model/run/executions.h"

namespace spillway {
namespace {

SimTime length_of(const GpuEvent& event) { return event.end - event.start; }

bool crosses_link(const GpuEvent& event) {
  return event.kind == GpuEvent::Kind::kCopy &&
         (event.copy == CopyKind::kHostToDevice || event.copy == CopyKind::kDeviceToHost);
}

/// Times in which at least one event of a kind ran on a device, in order and apart.
using Spans = std::vector<std::pair<SimTime, SimTime>>;
using DeviceSpans = std::map<std::int64_t, Spans>;

template <typename IsMeant>
DeviceSpans spans_of(const std::vector<GpuEvent>& by_start, const IsMeant& is_meant) {
  DeviceSpans result;
  for (const GpuEvent& event : by_start) {
    if (!is_meant(event)) continue;
    Spans& spans = result[event.device];
    if (!spans.empty() && event.start <= spans.back().second)
      spans.back().second = std::max(spans.back().second, event.end);
    else
      spans.emplace_back(event.start, event.end);
  }
  return result;
}

bool is_kernel(const GpuEvent& event) { return event.kind == GpuEvent::Kind::kKernel; }

SimTime overlap(const GpuEvent& event, const Spans& spans) {
  SimTime total;
  auto span = std::ranges::upper_bound(spans, event.start, {}, &Spans::value_type::second);
  for (; span != spans.end() && span->first < event.end; ++span)
    total += std::min(span->second, event.end) - std::max(span->first, event.start);
  return total;
}

std::vector<MeasuredStream> find_streams(const GpuEvents& all, DeviceSpans& kernels) {
  struct Sum {
    std::int64_t kernels = 0, copies = 0;
    SimTime kernel, copy, beside;
  };
  std::map<std::pair<std::int64_t, std::string_view>, Sum> sums;
  for (const GpuEvent& event : all.events) {
    Sum& sum = sums[{event.device, all.names[event.stream]}];
    if (event.kind == GpuEvent::Kind::kKernel) {
      ++sum.kernels;
      sum.kernel += length_of(event);
    }
    if (!crosses_link(event)) continue;
    ++sum.copies;
    sum.copy += length_of(event);
    sum.beside += overlap(event, kernels[event.device]);
  }
  std::vector<MeasuredStream> streams;
  for (const auto& [stream, sum] : sums)
    streams.push_back({stream.first, std::string(stream.second), sum.kernels, sum.copies,
                       to_seconds(sum.kernel), to_seconds(sum.copy), to_seconds(sum.beside)});
  return streams;
}

std::vector<MeasuredCopy> find_copies(const GpuEvents& all, DeviceSpans& kernels) {
  const auto copies_of = [](CopyKind kind) {
    return [kind](const GpuEvent& event) { return crosses_link(event) && event.copy == kind; };
  };
  auto in = spans_of(all.events, copies_of(CopyKind::kHostToDevice));
  auto out = spans_of(all.events, copies_of(CopyKind::kDeviceToHost));
  std::vector<MeasuredCopy> copies;
  for (const GpuEvent& event : all.events) {
    if (event.kind != GpuEvent::Kind::kCopy) continue;
    MeasuredCopy copy;
    copy.kind = event.copy;
    copy.from = event.from;
    copy.to = event.to;
    copy.bytes = event.bytes;
    copy.time = to_seconds(length_of(event));
    copy.beside_kernels = to_seconds(overlap(event, kernels[event.device]));
    if (crosses_link(event)) {
      auto& opposite = event.copy == CopyKind::kHostToDevice ? out : in;
      copy.beside_opposite = to_seconds(overlap(event, opposite[event.device]));
    }
    copy.device = event.device;
    copies.push_back(std::move(copy));
  }
  std::ranges::stable_sort(copies, {}, &MeasuredCopy::device);
  return copies;
}

std::string counted(std::size_t n, const std::string& one, const std::string& many) {
  return format_count(static_cast<std::int64_t>(n)) + " " + (n == 1 ? one : many);
}

/// What was read, and what the kernels without a name mean.
void describe(const std::vector<GpuEvent>& events, MeasuredRun& run) {
  std::set<std::int64_t> devices;
  std::size_t kernels = 0, copies = 0, unnamed = 0;
  SimTime time, unnamed_time;
  for (const GpuEvent& event : events) {
    devices.insert(event.device);
    copies += event.kind == GpuEvent::Kind::kCopy ? 1u : 0u;
    if (event.kind != GpuEvent::Kind::kKernel) continue;
    ++kernels;
    time += length_of(event);
    if (event.instruction != RunNameId()) continue;
    ++unnamed;
    unnamed_time += length_of(event);
  }
  run.read.push_back(counted(kernels, "kernel", "kernels") + ", " +
                     counted(copies, "copy", "copies") + " on " +
                     counted(devices.size(), "device", "devices"));
  run.read.push_back(counted(run.instructions.size(), "instruction", "instructions") + " of " +
                     counted(run.modules.size(), "module", "modules") + " by name");
  if (unnamed > 0)
    run.notes.push_back({counted(unnamed, "kernel has", "kernels have") +
                             " no HLO name: " + format_seconds(to_seconds(unnamed_time)) + " of " +
                             format_seconds(to_seconds(time)),
                         "they count as busy time of their stream, not as an instruction's; "
                         "kernels in CUDA graphs lose their names: profile with "
                         "--xla_gpu_enable_command_buffer= (empty)"});
}

/// Copies that stand in one stream with kernels never run beside them.
void describe_overlap(MeasuredRun& run) {
  for (const MeasuredStream& stream : run.streams)
    if (stream.copies > 0 && stream.kernels > 0)
      run.notes.push_back(
          {"stream " + stream.name + " of device " + std::to_string(stream.device) + " runs " +
               counted(static_cast<std::size_t>(stream.copies), "host copy", "host copies") +
               " among its kernels",
           "they do not overlap with those: the step waits for each"});
}

}  // namespace

RunNameId RunNames::intern(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
  const RunNameId id = names_.push(std::string(name));
  ids_.emplace(name, id);
  return id;
}

void summarize(GpuEvents all, MeasuredRun& run) {
  std::vector<GpuEvent>& events = all.events;
  std::ranges::stable_sort(events, {}, &GpuEvent::start);
  DeviceSpans kernels = spans_of(events, is_kernel);
  Executions executions = find_executions(all.names, events);
  run.instructions = std::move(executions.instructions);
  run.modules = std::move(executions.modules);
  run.copies = find_copies(all, kernels);
  run.streams = find_streams(all, kernels);
  describe(events, run);
  describe_overlap(run);
}

}  // namespace spillway
