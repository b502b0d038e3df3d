#include "model/flags/flag_settings.h"

#include <algorithm>
#include <charconv>

namespace spillway {
namespace {

constexpr std::string_view kLatencyHiding = "xla_gpu_enable_latency_hiding_scheduler";
constexpr std::string_view kSpeedOfLight = "xla_gpu_enable_analytical_sol_latency_estimator";
constexpr std::string_view kAnalytical = "xla_gpu_enable_analytical_latency_estimator";
constexpr std::string_view kProfile = "xla_gpu_pgle_profile_file_or_directory_path";
constexpr std::string_view kSlop = "xla_gpu_memory_limit_slop_factor";
constexpr std::string_view kAsyncComputes = "xla_gpu_experimental_parallel_async_compute_limit";
constexpr std::string_view kCollectives = "xla_gpu_experimental_parallel_collective_overlap_limit";
constexpr std::string_view kFencing =
    "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes";
constexpr std::string_view kSlack = "xla_gpu_experimental_scheduler_memory_fencing_slack_windows";
constexpr std::string_view kEarly = "xla_gpu_experimental_collective_start_as_early_as_possible";
constexpr std::string_view kPipelined = "xla_gpu_enable_pipelined_host_offloading";

constexpr std::string_view kDecides[] = {kLatencyHiding, kSpeedOfLight,  kAnalytical,  kProfile,
                                         kSlop,          kAsyncComputes, kCollectives, kFencing,
                                         kSlack,         kEarly,         kPipelined};

/// Flags of which every use adds to what stands there.
constexpr std::string_view kAddUp[] = {"xla_disable_hlo_passes", "xla_enable_hlo_passes_only",
                                       "xla_backend_extra_options",
                                       "xla_gpu_analytical_latency_estimator_options"};

/// The first jaxlib with speed-of-light estimates by default.
constexpr JaxlibVersion kSpeedOfLightByDefault{{0, 7, 2, 0}};

/// Hopper and Blackwell of data centres; empty for what is neither known to be one nor older.
std::optional<bool> has_speed_of_light(std::string_view compute_capability) {
  int major = 0;
  const char* const end = compute_capability.data() + compute_capability.size();
  const auto [at, error] = std::from_chars(compute_capability.data(), end, major);
  if (error != std::errc() || major > 10) return std::nullopt;
  return major >= 9;
}

bool bool_of(const FlagSettings& settings, std::string_view name, bool fallback) {
  const auto found = settings.find(name);
  return found == settings.end() ? fallback : parse_flag_bool(found->second).value_or(fallback);
}

void set_integer(const FlagSettings& settings, std::string_view name, std::int64_t& value) {
  if (const auto found = settings.find(name); found != settings.end())
    value = parse_flag_integer(found->second).value_or(value);
}

BelievedCosts estimator_of(const FlagSettings& settings, const FlagContext& context) {
  if (const auto profile = settings.find(kProfile);
      profile != settings.end() && !profile->second.empty())
    return BelievedCosts::kProfile;
  if (bool_of(settings, kAnalytical, false)) return BelievedCosts::kAnalytical;
  const bool speed_of_light =
      bool_of(settings, kSpeedOfLight, context.jaxlib >= kSpeedOfLightByDefault);
  return speed_of_light && has_speed_of_light(context.compute_capability).value_or(false)
             ? BelievedCosts::kSpeedOfLight
             : BelievedCosts::kTShirt;
}

/// IsLHSEnabled.
std::optional<bool> hides_latencies(const FlagSettings& settings, const FlagContext& context) {
  if (const auto found = settings.find(kLatencyHiding); found != settings.end())
    if (const auto said = parse_flag_bool(found->second)) return *said;
  if (const auto profile = settings.find(kProfile);
      profile != settings.end() && !profile->second.empty())
    return true;
  if (!bool_of(settings, kSpeedOfLight, context.jaxlib >= kSpeedOfLightByDefault)) return false;
  return has_speed_of_light(context.compute_capability);
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

std::optional<bool> hides_latencies_unset(const FlagContext& context) {
  return hides_latencies({}, context);
}

std::string_view name_of(BelievedCosts choice) {
  switch (choice) {
    case BelievedCosts::kTShirt:
      return "fixed costs";
    case BelievedCosts::kSpeedOfLight:
      return "speed of light";
    case BelievedCosts::kAnalytical:
      return "analytical";
    case BelievedCosts::kProfile:
      return "a profile";
  }
  return "";
}

std::optional<ScheduleSettings> schedule_settings(const FlagSettings& settings,
                                                  const FlagContext& context) {
  const auto hides = hides_latencies(settings, context);
  if (!hides) return std::nullopt;
  ScheduleSettings result;
  result.hides_latencies = *hides;
  result.estimator = estimator_of(settings, context);
  set_integer(settings, kSlop, result.memory_slop_percent);
  set_integer(settings, kAsyncComputes, result.async_computes);
  set_integer(settings, kCollectives, result.collectives);
  set_integer(settings, kFencing, result.fencing_threshold_bytes);
  set_integer(settings, kSlack, result.fencing_slack_windows);
  result.starts_collectives_early = bool_of(settings, kEarly, false);
  result.pipelines_host_copies = bool_of(settings, kPipelined, false);
  return result;
}

bool decides_order(std::string_view flag) {
  return std::ranges::find(kDecides, flag) != std::end(kDecides);
}

}  // namespace spillway
