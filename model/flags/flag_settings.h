// What a set of flags comes to: values by name, and what XLA's scheduler makes of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/jaxlib_version.h"
#include "model/flags/read_flags.h"

namespace spillway {

/// Which flags are set, to what. The last use of a name wins, as in XLA; lists of passes and of
/// key=value pairs add up. A flag without a value is true.
using FlagSettings = std::map<std::string, std::string, std::less<>>;
FlagSettings settle(const FlagText& text);

/// Whether every use of a flag adds to what stands there already.
bool adds_up(std::string_view flag);

/// XLA's reading of values; empty where there is none to be had from the text.
std::optional<bool> parse_flag_bool(std::string_view text);
std::optional<std::int64_t> parse_flag_integer(std::string_view text);

/// Where flags apply.
struct FlagContext {
  JaxlibVersion jaxlib;
  std::string compute_capability;  ///< "10.0"; empty where the device is not known
};

/// Whether XLA hides latencies on such a device when no flag says so; empty where that is not known
/// to us. Speed-of-light estimates bring it, for Hopper and Blackwell.
/// Source: SolLatencyEstimator::IsSupportedForModule and IsLHSEnabled in xla/service/gpu. Left out:
/// programs with collectives that the estimator does not support, and optimisation level O1.
std::optional<bool> hides_latencies_unset(const FlagContext& context);

enum class BelievedCosts : std::uint8_t { kTShirt, kSpeedOfLight, kAnalytical, kProfile };
std::string_view name_of(BelievedCosts choice);

/// What of the flags decides XLA's order, defaults filled in.
struct ScheduleSettings {
  bool hides_latencies = false;
  BelievedCosts estimator = BelievedCosts::kTShirt;
  std::int64_t memory_slop_percent = 95;
  std::int64_t async_computes = 2;  ///< in flight
  std::int64_t collectives = 1;     ///< in flight
  std::int64_t fencing_threshold_bytes = -1;
  std::int64_t fencing_slack_windows = 1;
  bool starts_collectives_early = false;
  bool pipelines_host_copies = false;

  friend bool operator==(const ScheduleSettings&, const ScheduleSettings&) = default;
};

/// Empty where it is not known whether latencies are hidden. Values that are none count as not set.
std::optional<ScheduleSettings> schedule_settings(const FlagSettings& settings,
                                                  const FlagContext& context);

/// Whether a flag is one that `schedule_settings` looks at.
bool decides_order(std::string_view flag);

}  // namespace spillway
