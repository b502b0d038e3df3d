#include "model/flags/flag_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/flags/flag_table.h"
#include "model/flags/known_flags.h"

namespace spillway::internal {
namespace {

constexpr const char* kLatencyHiding = "xla_gpu_enable_latency_hiding_scheduler";
constexpr const char* kSpeedOfLight = "xla_gpu_enable_analytical_sol_latency_estimator";
constexpr const char* kAnalytical = "xla_gpu_enable_analytical_latency_estimator";
constexpr const char* kProfile = "xla_gpu_pgle_profile_file_or_directory_path";
constexpr const char* kFencing = "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes";
constexpr const char* kSlack = "xla_gpu_experimental_scheduler_memory_fencing_slack_windows";

/// Flags that mean something to the latency-hiding scheduler alone.
constexpr const char* kSchedulersOwn[] = {
    kSpeedOfLight,
    kAnalytical,
    "xla_gpu_analytical_latency_estimator_options",
    "xla_gpu_experimental_parallel_async_compute_limit",
    "xla_gpu_experimental_parallel_collective_overlap_limit",
    "xla_gpu_experimental_parallel_scale_up_collective_overlap_limit",
    "xla_gpu_experimental_collective_start_as_early_as_possible",
    "xla_gpu_experimental_enable_selective_memcpy_overlap",
    kFencing,
    kSlack,
    kProfile,
    "xla_gpu_pgle_accuracy_checker",
};

struct Line {
  const FlagSettings& settings;
  const FlagContext& context;

  bool has(std::string_view name) const { return settings.contains(name); }
  /// As a flag that is true or false; empty where it is not set, or to neither.
  std::optional<bool> truth(std::string_view name) const {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : parse_flag_bool(found->second);
  }
  std::string text(std::string_view name) const {
    const auto found = settings.find(name);
    return found == settings.end() ? "" : found->second;
  }
};

using Findings = std::vector<Diagnostic>;

Diagnostic finding(const char* code, Severity severity, std::string what, std::string why,
                   std::string advice = "") {
  return {code, severity, std::move(what), std::move(why), std::move(advice)};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "--" : ", --") + name;
  return text;
}

/// Latency hiding said to be on where it is on, and the other way round.
Findings latency_hiding_as_it_is(const Line& line) {
  const auto said = line.truth(kLatencyHiding);
  FlagSettings others = line.settings;
  others.erase(kLatencyHiding);
  const auto without = schedule_settings(others, line.context);
  if (!said || !without || without->hides_latencies != *said) return {};
  if (hides_latencies_unset(line.context) != said) return {};  // other flags made it so
  return {finding(
      "no-effect", Severity::kInfo,
      fmt::format("--{}={} has no effect on your version.", kLatencyHiding, *said),
      fmt::format("jaxlib {} has latency hiding {} for compute capability {} when the flag is not "
                  "set{}.",
                  to_string(line.context.jaxlib), *said ? "on" : "off",
                  line.context.compute_capability, *said ? ", and off when it is false" : ""),
      "Leave it out.")};
}

Findings latency_hiding_goes_with_estimator(const Line& line) {
  if (line.truth(kSpeedOfLight) != false || line.has(kLatencyHiding) || line.has(kProfile) ||
      hides_latencies_unset(line.context) != true)
    return {};
  return {finding("estimator-turns-off-hiding", Severity::kWarning,
                  fmt::format("--{}=false turns latency hiding off as well.", kSpeedOfLight),
                  "Where its own flag is not set, XLA hides latencies only if it has "
                  "speed-of-light estimates.",
                  fmt::format("To have it with fixed costs, add --{}=true.", kLatencyHiding))};
}

Findings scheduler_off_with_its_flags(const Line& line) {
  const auto all = schedule_settings(line.settings, line.context);
  if (!all || all->hides_latencies) return {};
  std::vector<std::string> idle;
  for (const char* name : kSchedulersOwn)
    if (line.has(name) && !(name == kSpeedOfLight && line.truth(name) == false))
      idle.emplace_back(name);
  if (idle.empty()) return {};
  return {finding("contradiction", Severity::kWarning,
                  fmt::format("{} and latency hiding off: only the latency-hiding scheduler looks "
                              "at {}.",
                              listed(idle), idle.size() == 1 ? "it" : "them"),
                  "", fmt::format("Set --{}=true, or leave the rest out.", kLatencyHiding))};
}

Findings pipelining_without_hiding(const Line& line) {
  const auto all = schedule_settings(line.settings, line.context);
  if (!all || all->hides_latencies || !all->pipelines_host_copies) return {};
  return {finding(
      "contradiction", Severity::kWarning,
      "--xla_gpu_enable_pipelined_host_offloading=true and latency hiding off.",
      "Pipelining takes memory so that copies can be hidden across iterations, and without the "
      "latency-hiding scheduler nothing is put in front of the wait.",
      fmt::format("Set --{}=true, or leave pipelining out.", kLatencyHiding))};
}

Findings estimators(const Line& line) {
  Findings found;
  const bool profile = !line.text(kProfile).empty();
  if (profile && (line.truth(kAnalytical) == true || line.truth(kSpeedOfLight) == true))
    found.push_back(finding("no-effect", Severity::kInfo, "the profile wins over the estimators.",
                            "They fill in only for instructions that it lacks."));
  if (!profile && line.truth(kAnalytical) == true && line.truth(kSpeedOfLight) == true)
    found.push_back(finding(
        "contradiction", Severity::kWarning,
        fmt::format("--{} and --{} are both on.", kAnalytical, kSpeedOfLight),
        "The analytical one wins: it counts a host copy as 5 us whatever its size, the other as "
        "5 ms.",
        "Keep one."));
  if (!profile && line.has("xla_gpu_pgle_accuracy_checker"))
    found.push_back(finding("no-effect", Severity::kInfo,
                            "--xla_gpu_pgle_accuracy_checker has no effect without a profile.",
                            ""));
  return found;
}

Findings fencing(const Line& line) {
  const auto threshold = parse_flag_integer(line.text(kFencing));
  const bool off = !line.has(kFencing) || (threshold && *threshold < 0);
  if (!off || !line.has(kSlack)) return {};
  return {finding("no-effect", Severity::kInfo,
                  fmt::format("--{} has no effect: fencing is off.", kSlack), "",
                  fmt::format("Fencing begins with --{}=BYTES.", kFencing))};
}

Findings passes(const Line& line) {
  const std::string disabled = "," + line.text("xla_disable_hlo_passes") + ",";
  Findings found;
  const bool no_remat = disabled.find(",rematerialization,") != std::string::npos;
  if (no_remat && line.truth("xla_gpu_enable_host_memory_offloading") == true)
    found.push_back(
        finding("contradiction", Severity::kWarning,
                "--xla_gpu_enable_host_memory_offloading=true and --xla_disable_hlo_passes="
                "rematerialization.",
                "It is that pass which would offload.", "Keep one."));
  if (!no_remat && disabled.find("remat") != std::string::npos)
    found.push_back(
        finding("no-such-pass", Severity::kWarning,
                fmt::format("--xla_disable_hlo_passes={} names no pass of rematerialisation.",
                            line.text("xla_disable_hlo_passes")),
                "XLA takes any name and says nothing.", "The pass is called rematerialization."));
  return found;
}

Findings estimator_options(const Line& line) {
  constexpr std::string_view kKeys[] = {
      "nccl_op_launch_us", "nic_speed_gbps", "chunk_prep_us", "rtt_us",
      "chunk_size_bytes",  "gpus_per_node",  "partition_size"};
  const std::string text = line.text("xla_gpu_analytical_latency_estimator_options");
  std::string_view rest = text;
  Findings found;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view key = rest.substr(0, std::min(rest.find('='), comma));
    if (std::ranges::find(kKeys, key) == std::end(kKeys))
      found.push_back(finding(
          "no-effect", Severity::kWarning,
          fmt::format("--xla_gpu_analytical_latency_estimator_options has no key {}.", quoted(key)),
          "XLA takes any key and says nothing.", ""));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return found;
}

/// Whether what does the work of an old flag is there: a flag, from its first version on.
bool replaced(const GoneFlag& gone, const JaxlibVersion& version) {
  const std::string_view instead = gone.instead;
  const KnownFlag* const flag = find_known_flag(instead.substr(0, instead.find('=')));
  return flag != nullptr && knows(*flag, version) == Knows::kYes;
}

Findings slop(const Line& line) {
  const auto percent = parse_flag_integer(line.text("xla_gpu_memory_limit_slop_factor"));
  if (!percent || (*percent > 0 && *percent <= 100)) return {};
  return {finding(
      "odd-limit", Severity::kWarning,
      fmt::format("--xla_gpu_memory_limit_slop_factor={} leaves the scheduler {}.", *percent,
                  *percent > 0 ? "more memory than there is" : "no memory at all"),
      "It is the percentage of the free pool that the scheduler aims to stay within.", "")};
}

/// jax#25404.
Findings crash_of_0_4_35(const Line& line) {
  if (line.context.jaxlib != JaxlibVersion{{0, 4, 35, 0}} || line.truth(kLatencyHiding) != true)
    return {};
  return {finding("known-crash", Severity::kError,
                  fmt::format("jaxlib 0.4.35 with --{}=true fails a check on overlap limits and "
                              "ends the process.",
                              kLatencyHiding),
                  "Reported in jax#25404.", "Take 0.4.38 or newer.")};
}

/// Flags set to what they are anyway.
Findings defaults(const Line& line) {
  std::vector<std::string> same;
  for (const auto& [name, value] : line.settings) {
    const FlagInfo* const info = find_flag(name);
    if (info == nullptr || name == kLatencyHiding) continue;
    const std::string_view fallback = default_of(*info, line.context.jaxlib);
    const auto truth = parse_flag_bool(value);
    const bool is_word = fallback == "true" || fallback == "false";
    if (is_word ? truth && *truth == (fallback == "true") : !fallback.empty() && value == fallback)
      same.push_back(name + "=" + value);
  }
  if (same.empty()) return {};
  return {finding("default", Severity::kInfo,
                  fmt::format("{} {} what jaxlib {} does anyway.", listed(same),
                              same.size() == 1 ? "is" : "are", to_string(line.context.jaxlib)),
                  "")};
}

/// Flags that are still taken, though something else does their work.
Findings old_flags(const Line& line) {
  Findings found;
  for (const auto& [name, value] : line.settings) {
    const KnownFlag* const flag = find_known_flag(name);
    const GoneFlag* const gone = find_gone_flag(name);
    const bool is_there = flag != nullptr && gone != nullptr &&
                          replaced(*gone, line.context.jaxlib) &&
                          knows(*flag, line.context.jaxlib) == Knows::kYes;
    if (is_there)
      found.push_back(finding("old-flag", Severity::kInfo,
                              fmt::format("--{} is on its way out.", name), "",
                              fmt::format("In its place: {}.", gone->instead)));
  }
  return found;
}

using Rule = Findings (*)(const Line&);
constexpr Rule kRules[] = {
    crash_of_0_4_35,
    latency_hiding_goes_with_estimator,
    scheduler_off_with_its_flags,
    pipelining_without_hiding,
    estimators,
    fencing,
    passes,
    estimator_options,
    slop,
    latency_hiding_as_it_is,
    old_flags,
    defaults,
};

}  // namespace

std::vector<Diagnostic> check_together(const FlagSettings& settings, const FlagContext& context) {
  std::vector<Diagnostic> found;
  for (const Rule rule : kRules)
    for (Diagnostic& finding : rule({settings, context})) found.push_back(std::move(finding));
  return found;
}

}  // namespace spillway::internal
