#include "sim/report/log_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"

namespace spillway {
namespace {

using log::LineNumber;
using log::LoggedBytes;

void add(LogPart& part, LineNumber line, const char* key, const std::optional<LoggedBytes>& bytes,
         std::string meaning) {
  if (bytes) part.rows.push_back({line, key, bytes, std::nullopt, std::move(meaning)});
}
void add_size(LogPart& part, LineNumber line, const char* key,
              const std::optional<std::int64_t>& bytes, const char* meaning) {
  // Negative: "not known" in the words of older versions.
  if (bytes && *bytes >= 0 && *bytes <= std::int64_t{1} << 60)
    add(part, line, key, LoggedBytes{Bytes(*bytes)}, meaning);
}
void add_count(LogPart& part, LineNumber line, const char* key, std::int64_t count,
               const char* meaning) {
  part.rows.push_back({line, key, std::nullopt, count, meaning});
}

const char* failed_meaning(log::FailedIn where) {
  switch (where) {
    case log::FailedIn::kDevicePool:
      return "one request, in one piece, that the HBM pool could not serve";
    case log::FailedIn::kHostPool:
      return "one request that the pool of pinned host memory, one a device, could not serve";
    case log::FailedIn::kDevice:
      return "one request that the driver refused: the card itself had no more";
    case log::FailedIn::kPinnedMemory:
      return "host memory that the driver could not pin, whatever the host has free";
  }
  return "";
}

LogPart part_of(const log::OutOfMemory& found) {
  LogPart part{"out-of-memory", fmt::format("out of memory: {}", name_of(found.where)),
               found.line,      found.times,
               false,           {}};
  if (!found.executable.empty()) part.title += ", in " + quoted(found.executable);
  add(part, found.line, "requested_bytes", found.requested, failed_meaning(found.where));
  return part;
}

LogPart part_of(const log::CudaMemory& found) {
  LogPart part{"cuda-memory", "the card, as the driver reports it", found.line, 1, false, {}};
  add(part, found.line, "free_bytes", LoggedBytes{found.free},
      "free at that moment, for everybody");
  add(part, found.line, "total_bytes", LoggedBytes{found.total},
      "what fractions of the memory refer to");
  return part;
}

LogPart part_of(const log::BufferStats& found) {
  LogPart part{
      "buffer-stats", "statistics of the program that failed", found.line, 1, found.cut, {}};
  const LineNumber line = found.line;
  add(part, line, "parameter_bytes", found.parameter, "its arguments: there before it starts");
  add(part, line, "constant_bytes", found.constant, "constants");
  add(part, line, "maybe_live_out_bytes", found.maybe_live_out,
      "results, each a block of its own; those that reuse an argument count here as well");
  add(part, line, "temp_bytes", found.temp,
      "all temporaries of a memory space: one block, asked for in one piece");
  add(part, line, "temp_fragmentation_bytes", found.temp_fragmentation, "gaps in that block");
  add(part, line, "total_bytes", found.total,
      "the program's sum over all memory spaces, pinned host memory too");
  add(part, line, "total_fragmentation_bytes", found.total_fragmentation,
      "above an ideal order of the operations: not only gaps");
  for (std::size_t i = 0; i < std::min<std::size_t>(found.peak.size(), 5); ++i) {
    const log::PeakBuffer& buffer = found.peak[i];
    std::string what = "at the peak: " + quoted(buffer.shape);
    if (buffer.parameter) what += ", an argument";
    if (!buffer.op_name.empty()) what += ", " + quoted(buffer.op_name);
    add(part, buffer.line, "peak_buffer_bytes", buffer.size, what);
  }
  return part;
}

LogPart part_of(const log::PoolSize& found) {
  LogPart part{"pool-size", fmt::format("{} pool of device {}", name_of(found.kind), found.device),
               found.line,  1,
               false,       {}};
  add(part, found.line, "limit_bytes", LoggedBytes{found.bytes},
      found.preallocated ? "taken from the card at the start: the budget, not the card's size"
                         : "how far it may grow: the budget, not the card's size");
  return part;
}

LogPart part_of(const log::FailedRequest& found) {
  LogPart part{"failed-request",
               fmt::format("{}, the {} pool, ran out", found.allocator,
                           name_of(log::pool_kind(found.allocator))),
               found.line,
               found.times,
               false,
               {}};
  add(part, found.line, "requested_bytes", found.requested, "one piece of this size was missing");
  return part;
}

LogPart part_of(const log::PoolDump& found) {
  LogPart part{"pool",     fmt::format("state of the {} pool", name_of(found.kind)),
               found.line, 1,
               found.cut,  {}};
  if (!found.allocator.empty()) part.title += " " + found.allocator;
  const LineNumber line = found.line;
  add(part, line, "limit_bytes", found.limit, "the most the pool may hold: the budget");
  add(part, line, "in_use_bytes", found.in_use, "of all programs and arrays, when it failed");
  if (found.limit && found.in_use && found.limit->value >= found.in_use->value)
    add(part, line, "free_bytes",
        LoggedBytes{found.limit->value - found.in_use->value,
                    found.limit->off_by + found.in_use->off_by},
        "limit less in use: a sum of pieces, not one piece");
  add(part, line, "largest_free_bytes", found.largest_free, "the largest piece that was free");
  add(part, line, "pool_bytes", found.pool, "taken from the driver so far");
  add(part, line, "max_in_use_bytes", found.max_in_use, "the most since the process started");
  add(part, line, "max_alloc_bytes", found.max_alloc, "the largest request ever served");
  if (found.allocations)
    add_count(part, line, "allocations", *found.allocations, "since the process started");
  if (found.free_chunks > 0) {
    add_count(part, line, "free_chunks", static_cast<std::int64_t>(found.free_chunks),
              "pieces that were free");
    add(part, line, "free_in_chunks_bytes", LoggedBytes{found.free_in_chunks}, "their sum");
  }
  return part;
}

LogPart part_of(const log::RematWarning& found) {
  LogPart part{"rematerialization",
               "XLA's own rematerialisation gave up",
               found.line,
               found.times,
               false,
               {}};
  add(part, found.line, "limit_bytes", found.limit, "what it aimed at; no lower bound of anything");
  add(part, found.line, "reached_bytes", found.reached,
      "its estimate of the peak afterwards; counts pinned host memory as HBM");
  add(part, found.line, "original_bytes", found.original, "its estimate before");
  return part;
}

LogPart part_of(const log::SchedulerMemory& found) {
  const bool usage = found.message == log::SchedulerMessage::kUsage;
  LogPart part{"scheduler",
               usage ? "latency-hiding scheduler" : "limit of the scheduler and rematerialisation",
               found.line,
               1,
               false,
               {}};
  add(part, found.line, usage ? "usage_bytes" : "arguments_bytes", LoggedBytes{found.bytes},
      usage ? "its estimate of the peak" : "arguments and results of the program");
  add(part, found.line, "limit_bytes", LoggedBytes{found.limit},
      usage ? "only decides between equal candidates; nothing stops it from going above"
            : "80 % of the card, or the pool: from it the limit is computed");
  return part;
}

LogPart part_of(const log::UsageReport& found) {
  LogPart part{"memory-usage-report", "memory usage report", found.line, 1, found.cut, {}};
  if (found.mixed_total)
    add(part, found.line, "mixed_total_bytes", LoggedBytes{*found.mixed_total},
        "all memory spaces in one sum, as this version prints it");
  for (const log::ReportSpace& space : found.spaces) {
    const bool device = space.color >= 0 && space.color <= 2;
    std::string meaning = fmt::format("colour {}: {}", space.color,
                                      device             ? "HBM"
                                      : space.color == 5 ? "pinned host memory"
                                      : space.color == 6 ? "unpinned host memory"
                                                         : "not known");
    if (!space.xla_name.empty() && space.color != 0)
      meaning += fmt::format("; the name {} is not to be used", quoted(space.xla_name));
    add(part, space.line, device ? "device_space_bytes" : "other_space_bytes", space.total,
        meaning);
    for (std::size_t i = 0; i < std::min<std::size_t>(space.largest.size(), 3); ++i)
      add(part, space.largest[i].line, "largest_bytes", space.largest[i].size,
          fmt::format("{} value(s) one after another at one place: {}", space.largest[i].values,
                      quoted(space.largest[i].shapes)));
  }
  add(part, found.line, "device_total_bytes", found.device_total(),
      found.mixed_total ? "HBM: the sum less what is listed as host memory"
                        : "HBM: colours 0, 1 and 2");
  add(part, found.line, "host_total_bytes", found.host_total(), "pinned host memory: colour 5");
  return part;
}

LogPart part_of(const log::MemoryAnalysis& found) {
  LogPart part{"memory-analysis", "memory_analysis()", found.line, 1, found.cut, {}};
  const LineNumber line = found.line;
  add_size(part, line, "argument_bytes", found.argument, "arguments");
  add_size(part, line, "output_bytes", found.output, "results, with those that reuse arguments");
  add_size(part, line, "alias_bytes", found.alias, "results that reuse an argument: counted twice");
  add_size(part, line, "temp_bytes", found.temp, "temporaries: one block");
  if (found.generated_code.value_or(0) > 0)
    add_size(part, line, "generated_code_bytes", found.generated_code, "the program's code");
  if (found.available()) {
    if (const auto total = found.device_total())
      add(part, line, "device_total_bytes", LoggedBytes{*total},
          "arguments + results - reused + temporaries; no constants");
    if (found.host_total().value_or(Bytes(0)) > Bytes(0)) {
      add_size(part, line, "host_argument_bytes", found.host_argument,
               "arguments in pinned memory");
      add_size(part, line, "host_output_bytes", found.host_output, "results in pinned memory");
      add_size(part, line, "host_alias_bytes", found.host_alias, "of these reused");
      add_size(part, line, "host_temp_bytes", found.host_temp, "offloaded temporaries");
    }
    add_size(part, line, "peak_bytes", found.peak,
             "XLA's estimate of the peak, with host memory in it");
  }
  return part;
}

LogPart part_of(const log::CompilerRemark& found) {
  const auto title = [&found] {
    switch (found.remark) {
      case log::Remark::kHostCompute:
        return "something computes on an array in host memory";
      case log::Remark::kDonationUnused:
        return "donated buffers were not usable";
      case log::Remark::kNoProto:
        return "a program too large to serialise";
      case log::Remark::kCommandBuffer:
        return "no memory for a command buffer";
      case log::Remark::kNoLiveRange:
        return "no live ranges in this dump";
      case log::Remark::kHostResult:
        return "a result is in host memory, against the layout of the entry (E1200)";
    }
    return "";
  };
  return {"remark", title(), found.line, found.times, false, {}};
}

LogPart part_of(const log::Setting& found) {
  return {"setting", fmt::format("{} = {:g}", found.name, found.value), found.line, 1, false, {}};
}

template <typename Found>
void append(std::vector<LogPart>& parts, const std::vector<Found>& found) {
  for (const Found& one : found) parts.push_back(part_of(one));
}

using Values = std::vector<LogComparison::Value>;

/// So many values of one quantity stand side by side, each once.
constexpr std::size_t kComparedValues = 16;

bool all_agree(const Values& values) {
  return std::ranges::all_of(values, [&values](const LogComparison::Value& value) {
    return may_be_equal(values.front().bytes, value.bytes);
  });
}

std::string apart_text(const Values& values) {
  const auto [least, most] = std::ranges::minmax(
      values, {}, [](const LogComparison::Value& value) { return value.bytes.value; });
  std::string text = "apart by " + format_bytes(most.bytes.value - least.bytes.value);
  if (least.bytes.value > Bytes(0))
    text += fmt::format(", {:.2f} times", ratio(most.bytes.value, least.bytes.value));
  return text;
}

/// `what` explains a difference; empty when it is not known to.
void compare(std::vector<LogComparison>& comparisons, const char* quantity, Values values,
             const std::string& what) {
  if (values.size() < 2) return;
  LogComparison comparison{quantity, std::move(values), true, "agree"};
  comparison.agree = all_agree(comparison.values);
  if (!comparison.agree)
    comparison.verdict = apart_text(comparison.values) + (what.empty() ? "" : ": " + what);
  comparisons.push_back(std::move(comparison));
}

void push(Values& values, const char* source, LineNumber line,
          const std::optional<LoggedBytes>& bytes) {
  if (!bytes || values.size() == kComparedValues) return;
  const bool repeated = std::ranges::any_of(values, [&](const LogComparison::Value& value) {
    return value.source == source && value.bytes == *bytes;
  });
  if (!repeated) values.push_back({source, line, *bytes});
}

std::optional<LoggedBytes> logged(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return LoggedBytes{*bytes};
}

void compare_program(const log::Log& log, std::vector<LogComparison>& comparisons) {
  Values total, temp, host;
  for (const log::BufferStats& stats : log.buffer_stats) {
    push(total, "statistics, total", stats.line, stats.total);
    push(temp, "statistics, temporaries", stats.line, stats.temp);
  }
  bool offloads = false;
  for (const log::UsageReport& report : log.usage_reports) {
    push(total, "memory usage report, HBM", report.line, report.device_total());
    push(host, "memory usage report, colour 5", report.line, report.host_total());
    offloads = offloads || report.host_total().has_value();
  }
  for (const log::MemoryAnalysis& analysis : log.memory_analyses) {
    if (!analysis.available()) continue;
    push(total, "memory_analysis(), sum", analysis.line, logged(analysis.device_total()));
    if (analysis.temp && *analysis.temp >= 0 && *analysis.temp <= std::int64_t{1} << 60)
      push(temp, "memory_analysis(), temporaries", analysis.line,
           LoggedBytes{Bytes(*analysis.temp)});
    const auto on_host = analysis.host_total();
    if (on_host && *on_host > Bytes(0)) {
      push(host, "memory_analysis(), host", analysis.line, logged(on_host));
      offloads = true;
    }
  }
  for (const log::OutOfMemory& failed : log.out_of_memory)
    if (failed.where == log::FailedIn::kDevicePool && !temp.empty() &&
        may_be_equal(temp.front().bytes, failed.requested))
      push(temp, "the request that failed", failed.line, failed.requested);
  const std::string host_counted =
      offloads && !log.buffer_stats.empty()
          ? "the statistics count pinned host memory as well"
          : "two programs, or two builds of one; memory_analysis() leaves out constants";
  compare(comparisons, "program in HBM", std::move(total), host_counted);
  compare(comparisons, "temporaries", std::move(temp),
          offloads ? host_counted : "two programs, or two builds of one");
  compare(comparisons, "program in pinned host memory", std::move(host), "");
}

void compare_pools_and_estimates(const log::Log& log, std::vector<LogComparison>& comparisons) {
  Values pool, estimate;
  for (const log::PoolSize& size : log.pool_sizes)
    if (size.kind == log::PoolKind::kDevice)
      push(pool, "size at the start", size.line, LoggedBytes{size.bytes});
  for (const log::PoolDump& dump : log.pool_dumps)
    if (dump.kind == log::PoolKind::kDevice) push(pool, "limit in the dump", dump.line, dump.limit);
  for (const log::SchedulerMemory& scheduler : log.scheduler_memory)
    if (scheduler.message == log::SchedulerMessage::kUsage)
      push(estimate, "scheduler", scheduler.line, LoggedBytes{scheduler.bytes});
  for (const log::RematWarning& remat : log.remat_warnings)
    push(estimate, "rematerialisation, at the end", remat.line, remat.reached);
  for (const log::MemoryAnalysis& analysis : log.memory_analyses)
    if (analysis.available() && analysis.peak && *analysis.peak > 0 &&
        *analysis.peak <= std::int64_t{1} << 60)
      push(estimate, "memory_analysis(), peak", analysis.line, LoggedBytes{Bytes(*analysis.peak)});
  compare(comparisons, "HBM pool", std::move(pool), "devices or processes differ");
  compare(
      comparisons, "peak as the compiler estimates it", std::move(estimate),
      "each counts in its own way, and host memory too; what is allocated is the program's sum");
}

}  // namespace

std::vector<LogPart> make_log_parts(const log::Log& log) {
  std::vector<LogPart> parts;
  append(parts, log.out_of_memory);
  append(parts, log.cuda_memory);
  append(parts, log.buffer_stats);
  append(parts, log.pool_sizes);
  append(parts, log.failed_requests);
  append(parts, log.pool_dumps);
  append(parts, log.remat_warnings);
  append(parts, log.scheduler_memory);
  append(parts, log.usage_reports);
  append(parts, log.memory_analyses);
  append(parts, log.remarks);
  append(parts, log.settings);
  std::ranges::stable_sort(parts, {}, &LogPart::line);
  return parts;
}

std::vector<LogComparison> compare_parts(const log::Log& log) {
  std::vector<LogComparison> comparisons;
  compare_program(log, comparisons);
  compare_pools_and_estimates(log, comparisons);
  return comparisons;
}

}  // namespace spillway
