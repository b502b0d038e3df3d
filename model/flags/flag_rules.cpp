#include "model/flags/flag_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/flags/flag_names.h"
#include "model/flags/flag_table.h"
#include "model/flags/known_flags.h"
#include "model/flags/profile_path.h"

namespace spillway::internal {
namespace {

/// Flags that mean something to the latency-hiding scheduler alone.
constexpr std::string_view kSchedulersOwn[] = {
    flag::kSpeedOfLight, flag::kAnalytical,         flag::kEstimatorOptions, flag::kAsyncComputes,
    flag::kCollectives,  flag::kScaleUpCollectives, flag::kEarlyCollectives, flag::kSelectiveMemcpy,
    flag::kFencing,      flag::kFencingSlack,       flag::kProfile,          flag::kProfileChecker,
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

std::string device_text(const FlagContext& context) {
  return context.gpu ? "for compute capability " + context.gpu->compute_capability
                     : std::string("on every device");
}

/// Latency hiding said to be on where it is on, and the other way round.
Findings latency_hiding_as_it_is(const Line& line) {
  const auto said = line.truth(flag::kLatencyHiding);
  FlagSettings others = line.settings;
  others.erase(std::string(flag::kLatencyHiding));
  const auto without = schedule_settings(others, line.context);
  if (!said || !without || without->scheduler.hides_latencies != *said) return {};
  if (hides_latencies_unset(line.context) != said) return {};  // other flags made it so
  return {
      finding("no-effect", Severity::kInfo,
              fmt::format("--{}={} has no effect on your version.", flag::kLatencyHiding, *said),
              fmt::format("jaxlib {} has latency hiding {} {} when the flag is not set{}.",
                          to_string(line.context.jaxlib), *said ? "on" : "off",
                          device_text(line.context), *said ? ", and off when it is false" : ""),
              "Leave it out.")};
}

Findings latency_hiding_goes_with_estimator(const Line& line) {
  if (line.truth(flag::kSpeedOfLight) != false || line.has(flag::kLatencyHiding) ||
      line.has(flag::kProfile) || hides_latencies_unset(line.context) != true)
    return {};
  return {
      finding("estimator-turns-off-hiding", Severity::kWarning,
              fmt::format("--{}=false turns latency hiding off as well.", flag::kSpeedOfLight),
              "Where its own flag is not set, XLA hides latencies only if it has "
              "speed-of-light estimates.",
              fmt::format("To have it with fixed costs, add --{}=true.", flag::kLatencyHiding))};
}

Findings scheduler_off_with_its_flags(const Line& line) {
  const auto all = schedule_settings(line.settings, line.context);
  if (!all || all->scheduler.hides_latencies) return {};
  std::vector<std::string> idle;
  for (const std::string_view name : kSchedulersOwn)
    if (line.has(name) && !(name == flag::kSpeedOfLight && line.truth(name) == false))
      idle.emplace_back(name);
  if (idle.empty()) return {};
  return {finding("contradiction", Severity::kWarning,
                  fmt::format("{} and latency hiding off: only the latency-hiding scheduler looks "
                              "at {}.",
                              listed(idle), idle.size() == 1 ? "it" : "them"),
                  "", fmt::format("Set --{}=true, or leave the rest out.", flag::kLatencyHiding))};
}

Findings pipelining_without_hiding(const Line& line) {
  const auto all = schedule_settings(line.settings, line.context);
  if (!all || all->scheduler.hides_latencies || !all->pipelines_host_copies) return {};
  return {finding(
      "contradiction", Severity::kWarning,
      flag::set(flag::kPipelinedOffloading, "true") + " and latency hiding off.",
      "Pipelining takes memory so that copies can be hidden across iterations, and without the "
      "latency-hiding scheduler nothing is put in front of the wait.",
      fmt::format("Set --{}=true, or leave pipelining out.", flag::kLatencyHiding))};
}

Findings estimators(const Line& line) {
  Findings found;
  const bool profile = is_profile_path(line.text(flag::kProfile));
  if (profile && (line.truth(flag::kAnalytical) == true || line.truth(flag::kSpeedOfLight) == true))
    found.push_back(finding("no-effect", Severity::kInfo, "the profile wins over the estimators.",
                            "They fill in only for instructions that it lacks."));
  if (!profile && line.truth(flag::kAnalytical) == true && line.truth(flag::kSpeedOfLight) == true)
    found.push_back(finding(
        "contradiction", Severity::kWarning,
        fmt::format("--{} and --{} are both on.", flag::kAnalytical, flag::kSpeedOfLight),
        "The analytical one wins: it counts a host copy as 5 us whatever its size, the other as "
        "5 ms.",
        "Keep one."));
  if (!profile && line.has(flag::kProfileChecker))
    found.push_back(
        finding("no-effect", Severity::kInfo,
                fmt::format("--{} has no effect without a profile.", flag::kProfileChecker), ""));
  return found;
}

bool fences(const Line& line) {
  const auto threshold = parse_flag_integer(line.text(flag::kFencing));
  return line.has(flag::kFencing) && !(threshold && *threshold < 0);
}

Findings fencing(const Line& line) {
  if (fences(line) || !line.has(flag::kFencingSlack)) return {};
  return {finding("no-effect", Severity::kInfo,
                  fmt::format("--{} has no effect: fencing is off.", flag::kFencingSlack), "",
                  fmt::format("Fencing begins with --{}=BYTES.", flag::kFencing))};
}

Findings passes(const Line& line) {
  const std::string disabled = "," + line.text(flag::kDisabledPasses) + ",";
  Findings found;
  const bool no_remat = disabled.find(",rematerialization,") != std::string::npos;
  if (no_remat && line.truth(flag::kHostMemoryOffloading) == true)
    found.push_back(finding("contradiction", Severity::kWarning,
                            flag::set(flag::kHostMemoryOffloading, "true") + " and " +
                                flag::set(flag::kDisabledPasses, "rematerialization") + ".",
                            "It is that pass which would offload.", "Keep one."));
  if (!no_remat && disabled.find("remat") != std::string::npos)
    found.push_back(finding("no-such-pass", Severity::kWarning,
                            flag::set(flag::kDisabledPasses, line.text(flag::kDisabledPasses)) +
                                " names no pass of rematerialisation.",
                            "XLA takes any name and says nothing.",
                            "The pass is called rematerialization."));
  return found;
}

Findings estimator_options(const Line& line) {
  constexpr std::string_view kKeys[] = {
      "nccl_op_launch_us", "nic_speed_gbps", "chunk_prep_us", "rtt_us",
      "chunk_size_bytes",  "gpus_per_node",  "partition_size"};
  const std::string text = line.text(flag::kEstimatorOptions);
  std::string_view rest = text;
  Findings found;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view key = rest.substr(0, std::min(rest.find('='), comma));
    if (std::ranges::find(kKeys, key) == std::end(kKeys))
      found.push_back(
          finding("no-effect", Severity::kWarning,
                  fmt::format("--{} has no key {}.", flag::kEstimatorOptions, quoted(key)),
                  "XLA takes any key and says nothing.", ""));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return found;
}

/// Whether what does the work of an old flag is there: a flag, from its first version on.
bool replaced(const GoneFlag& gone, const JaxlibVersion& version) {
  const std::string_view instead = gone.instead;
  return has_flag(version, instead.substr(0, instead.find('=')));
}

Findings slop(const Line& line) {
  const auto percent = parse_flag_integer(line.text(flag::kSlopFactor));
  if (!percent || (*percent > 0 && *percent <= 100)) return {};
  const char* const leaves = *percent > 0    ? "more memory than there is"
                             : *percent == 0 ? "no memory at all, as if all were taken"
                                             : "no limit: XLA takes it for a huge number";
  return {
      finding("odd-limit", Severity::kWarning,
              fmt::format("--{}={} leaves the scheduler {}.", flag::kSlopFactor, *percent, leaves),
              "It is the percentage of the free pool that the scheduler aims to stay within.",
              "From 1 to 100 makes sense, and 95 is the default.")};
}

/// The version that the limits below were tried on.
constexpr JaxlibVersion kTried{{0, 12, 0, 0}};

/// A limit below what the scheduler can work with.
struct LeastValue {
  std::string_view name;
  std::int64_t least;
  Severity severity;  ///< of a lower one, where latencies are hidden for certain
  const char* otherwise;
};
constexpr LeastValue kLeastValues[] = {
    {flag::kCollectives, 1, Severity::kError,
     "XLA fails a check on overlap limits and ends the process."},
    {flag::kAsyncComputes, 1, Severity::kWarning,
     "The compile of a program with host copies outside of loops fails: none may ever start."},
    {flag::kFencingSlack, 0, Severity::kError, "With fencing on the compile fails."},
};

Findings limits_too_small(const Line& line) {
  const auto all = schedule_settings(line.settings, line.context);
  if (all && !all->scheduler.hides_latencies) return {};  // nobody looks at them
  Findings found;
  for (const LeastValue& row : kLeastValues) {
    const auto value = parse_flag_integer(line.text(row.name));
    if (!value || *value >= row.least) continue;
    if (row.name == flag::kFencingSlack && !fences(line)) continue;
    const bool is_certain = all && line.context.jaxlib >= kTried;
    found.push_back(finding("odd-limit", is_certain ? row.severity : Severity::kWarning,
                            fmt::format("--{}={} is too small.", row.name, *value), row.otherwise,
                            fmt::format("It begins at {}.", row.least)));
  }
  return found;
}

/// The analytical model ended the compile of all programs that it was tried on: three training
/// steps, scanned and unrolled, with and without offloading, for GB200, H100 and A100.
Findings analytical_crashes(const Line& line) {
  const auto all = schedule_settings(line.settings, line.context);
  const bool unused = line.truth(flag::kAnalytical) != true ||
                      is_profile_path(line.text(flag::kProfile)) ||
                      (all && !all->scheduler.hides_latencies);
  if (unused || line.context.jaxlib < kTried) return {};
  return {
      finding("likely-crash", Severity::kWarning,
              flag::set(flag::kAnalytical, "true") + " ended every compile that it was tried on.",
              "jaxlib 0.12.0.1 fails a check on the shape of fusions with several results, and "
              "ends the process.",
              "Leave it out.")};
}

/// jax#25404.
Findings crash_of_0_4_35(const Line& line) {
  if (line.context.jaxlib != JaxlibVersion{{0, 4, 35, 0}} ||
      line.truth(flag::kLatencyHiding) != true)
    return {};
  return {finding("known-crash", Severity::kError,
                  fmt::format("jaxlib 0.4.35 with --{}=true fails a check on overlap limits and "
                              "ends the process.",
                              flag::kLatencyHiding),
                  "Reported in jax#25404.", "Take 0.4.38 or newer.")};
}

/// Flags set to what they are anyway.
Findings defaults(const Line& line) {
  std::vector<std::string> same;
  for (const auto& [name, value] : line.settings) {
    const FlagInfo* const info = find_flag(name);
    if (info == nullptr || name == flag::kLatencyHiding) continue;
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
    const GoneFlag* const gone = find_gone_flag(name);
    const bool is_there = gone != nullptr && replaced(*gone, line.context.jaxlib) &&
                          has_flag(line.context.jaxlib, name);
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
    limits_too_small,
    analytical_crashes,
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
