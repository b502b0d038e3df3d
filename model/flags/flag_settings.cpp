#include "model/flags/flag_settings.h"

#include <algorithm>
#include <charconv>

#include "model/flags/flag_names.h"
#include "model/flags/profile_path.h"

namespace spillway {
namespace {

constexpr std::string_view kDecides[] = {
    flag::kLatencyHiding, flag::kSpeedOfLight,     flag::kAnalytical,         flag::kProfile,
    flag::kSlopFactor,    flag::kAsyncComputes,    flag::kCollectives,        flag::kFencing,
    flag::kFencingSlack,  flag::kEarlyCollectives, flag::kPipelinedOffloading};

/// Flags of which every use adds to what stands there.
constexpr std::string_view kAddUp[] = {flag::kDisabledPasses, flag::kEnabledPassesOnly,
                                       flag::kBackendOptions, flag::kEstimatorOptions};

/// The first jaxlib with speed-of-light estimates by default.
constexpr JaxlibVersion kSpeedOfLightByDefault{{0, 7, 2, 0}};

bool bool_of(const FlagSettings& settings, std::string_view name, bool fallback) {
  const auto found = settings.find(name);
  return found == settings.end() ? fallback : parse_flag_bool(found->second).value_or(fallback);
}

void set_integer(const FlagSettings& settings, std::string_view name, std::int64_t& value) {
  if (const auto found = settings.find(name); found != settings.end())
    value = parse_flag_integer(found->second).value_or(value);
}

}  // namespace

FlagSettings settle(const FlagText& text) {
  FlagSettings settings;
  for (const FlagUse& use : text.uses) {
    const std::string value = use.value.value_or("true");
    const auto [at, is_new] = settings.try_emplace(use.name, value);
    if (is_new) continue;
    at->second = adds_up(use.name) ? at->second + "," + value : value;
  }
  return settings;
}

bool adds_up(std::string_view flag) { return std::ranges::find(kAddUp, flag) != std::end(kAddUp); }

std::optional<bool> parse_flag_bool(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower == "true" || lower == "1") return true;
  if (lower == "false" || lower == "0") return false;
  return std::nullopt;
}

std::optional<std::int64_t> parse_flag_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

SchedulerFlags scheduler_flags(const FlagSettings& settings, const JaxlibVersion& version) {
  SchedulerFlags flags;
  if (const auto found = settings.find(flag::kLatencyHiding); found != settings.end())
    flags.latency_hiding = parse_flag_bool(found->second);
  flags.speed_of_light = bool_of(settings, flag::kSpeedOfLight, version >= kSpeedOfLightByDefault);
  flags.analytical = bool_of(settings, flag::kAnalytical, false);
  const auto profile = settings.find(flag::kProfile);
  flags.has_profile = profile != settings.end() && is_profile_path(profile->second);
  return flags;
}

std::optional<bool> hides_latencies_unset(const FlagContext& context) {
  const auto choice =
      choose_scheduler(scheduler_flags({}, context.jaxlib), context.gpu, context.common_parts_only);
  return choice ? std::optional(choice->hides_latencies) : std::nullopt;
}

std::optional<ScheduleSettings> schedule_settings(const FlagSettings& settings,
                                                  const FlagContext& context) {
  const auto scheduler = choose_scheduler(scheduler_flags(settings, context.jaxlib), context.gpu,
                                          context.common_parts_only);
  if (!scheduler) return std::nullopt;
  ScheduleSettings result;
  result.scheduler = *scheduler;
  set_integer(settings, flag::kSlopFactor, result.memory_slop_percent);
  set_integer(settings, flag::kAsyncComputes, result.async_computes);
  set_integer(settings, flag::kCollectives, result.collectives);
  set_integer(settings, flag::kFencing, result.fencing_threshold_bytes);
  set_integer(settings, flag::kFencingSlack, result.fencing_slack_windows);
  result.starts_collectives_early = bool_of(settings, flag::kEarlyCollectives, false);
  result.pipelines_host_copies = bool_of(settings, flag::kPipelinedOffloading, false);
  return result;
}

bool decides_order(std::string_view flag) {
  return std::ranges::find(kDecides, flag) != std::end(kDecides);
}

}  // namespace spillway
