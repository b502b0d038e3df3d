#include <fmt/format.h>

#include "model/flags/flag_names.h"
#include "model/flags/flag_settings.h"
#include "sim/report/log_rules.h"

namespace spillway::log_rules {

void remat_limit(const Case& c, std::vector<LogFinding>& out) {
  if (c.log.remat_warnings.empty()) return;
  // The largest gap: a log may hold the warnings of several programs.
  const auto worst = std::ranges::max_element(
      c.log.remat_warnings, {},
      [](const log::RematWarning& w) { return w.reached.value - w.limit.value; });
  const bool alone = c.log.out_of_memory.empty() && c.log.failed_requests.empty();
  out.push_back(
      {"remat-limit", alone, lines_of({worst->line}),
       fmt::format(
           "{} is the limit rematerialisation aimed at, no lower bound of the program. It "
           "reached {}: offloading or recomputing must take away {} more by its count, "
           "which includes pinned host memory, so that an offloaded program can fit all the "
           "same. `spillway inspect` on the dump names the arrays; compile with "
           "--xla_disable_hlo_passes=rematerialization when offloading.",
           text(worst->limit), text(worst->reached),
           text(over(worst->reached.value, worst->limit.value)))});
}

void scheduler_limit(const Case& c, std::vector<LogFinding>& out) {
  for (const log::SchedulerMemory& scheduler : c.log.scheduler_memory) {
    if (scheduler.bytes <= scheduler.limit) continue;
    if (scheduler.message == log::SchedulerMessage::kArguments)
      out.push_back({"arguments-above-limit", true, lines_of({scheduler.line}),
                     fmt::format("Arguments and results alone, {}, exceed the {} that the compiler "
                                 "starts from: no order of operations helps. Shard them further, "
                                 "donate them, or keep optimizer state on the host.",
                                 text(scheduler.bytes), text(scheduler.limit))});
    else
      out.push_back(
          {"scheduler-limit", false, lines_of({scheduler.line}),
           fmt::format("The scheduler's limit of {} did not hold it back: it estimates {}. "
                       "The limit only decides between equal candidates. Scan the "
                       "layers, or switch the scheduler off ({}), or fence it ({}).",
                       text(scheduler.limit), text(scheduler.bytes),
                       flag::set(flag::kLatencyHiding, "false"),
                       flag::set(flag::kFencing, std::to_string(kFencedFrom.value())))});
    return;
  }
}

void analysis_meaning(const Case& c, std::vector<LogFinding>& out) {
  const auto& all = c.log.memory_analyses;
  const auto empty = std::ranges::find_if_not(all, &log::MemoryAnalysis::available);
  if (empty != all.end())
    out.push_back({"analysis-unavailable", false, lines_of({empty->line}),
                   "memory_analysis() has only zeros or -1: not available in this version or on "
                   "this backend, not a program without memory."});
  for (const log::MemoryAnalysis& analysis : all) {
    const auto total = analysis.device_total();
    const auto host = analysis.host_total();
    if (!total || !analysis.peak || !host || *host == Bytes(0)) continue;
    if (Bytes(*analysis.peak) <= *total) continue;
    out.push_back({"peak-counts-host", false, lines_of({analysis.line}),
                   fmt::format("peak_memory_in_bytes is above the sum of what is in HBM, {}: it "
                               "counts host buffers. The sum is what the pool must provide.",
                               text(*total))});
    return;
  }
}

void report_names(const Case& c, std::vector<LogFinding>& out) {
  for (const log::UsageReport& report : c.log.usage_reports) {
    const auto host = report.host_total();
    if (!host) continue;
    out.push_back({"host-in-report", false, lines_of({report.line}),
                   fmt::format("{} of the report are pinned host memory (colour 5, which XLA calls "
                               "'cmem'), not HBM.{}",
                               text(*host),
                               report.mixed_total
                                   ? " This version's total mixes both; sizes of allocations are "
                                     "rounded, so HBM is known only as closely."
                                   : "")});
    return;
  }
}

struct RemarkRow {
  log::Remark remark;
  const char* code;
  bool decides;
  const char* message;
};

constexpr RemarkRow kRemarkRows[] = {
    {log::Remark::kHostCompute, "host-compute", false,
     "Something besides a copy or a slice touches an offloaded array: the host computes it, very "
     "slowly. --xla_disable_automatic_host_compute_offload=true makes it an error."},
    {log::Remark::kDonationUnused, "donation-unused", false,
     "Donated buffers found no result of their shape: both copies are held."},
    {log::Remark::kNoProto, "no-proto", false,
     "This is XLA's message in place of a program: above 2 GB it cannot be serialised. Use the "
     "dump as text (--xla_dump_hlo_as_text)."},
    {log::Remark::kCommandBuffer, "command-buffer", true,
     "The driver had no memory for a graph of kernels, which lies beside the pool: lower "
     "XLA_PYTHON_CLIENT_MEM_FRACTION, or do without graphs (--xla_gpu_enable_command_buffer=)."},
    {log::Remark::kNoLiveRange, "no-live-range", false,
     "XLA had no live ranges to dump; `spillway inspect` computes them from the program's text."},
    {log::Remark::kHostResult, "host-result", true,
     "The step moves a tensor to the host and returns it from there, but its result is declared to "
     "be on the device: XLA refuses to compile (E1200). Either give that result a host layout "
     "(out_shardings with memory_kind=\"pinned_host\"), or bring it back with jax.device_put to "
     "\"device\" before it is returned."},
};

void remarks(const Case& c, std::vector<LogFinding>& out) {
  for (const log::CompilerRemark& remark : c.log.remarks)
    for (const RemarkRow& row : kRemarkRows)
      if (row.remark == remark.remark)
        out.push_back({row.code, row.decides, lines_of({remark.line}), row.message});
}

}  // namespace spillway::log_rules
