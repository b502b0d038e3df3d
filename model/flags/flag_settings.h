// What a set of flags comes to: values by name, and what XLA's scheduler makes of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/jaxlib_version.h"
#include "model/base/units.h"
#include "model/flags/read_flags.h"
#include "model/flags/scheduler_choice.h"

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
  std::optional<GpuModel> gpu{};  ///< empty where the device is not known
  /// Of the program that is compiled; true where there is none (scheduler_choice.h).
  bool common_parts_only = true;
};

/// What the flags say about which scheduler, with the defaults of a version.
SchedulerFlags scheduler_flags(const FlagSettings& settings, const JaxlibVersion& version);

/// Whether XLA hides latencies when no flag says so; empty where that depends on a device that is
/// not known.
std::optional<bool> hides_latencies_unset(const FlagContext& context);

/// What of the flags decides XLA's order, defaults filled in.
struct ScheduleSettings {
  SchedulerChoice scheduler;
  std::int64_t memory_slop_percent = 95;
  std::int64_t async_computes = 2;  ///< in flight
  std::int64_t collectives = 1;     ///< in flight
  std::int64_t fencing_threshold_bytes = -1;
  std::int64_t fencing_slack_windows = 1;
  bool starts_collectives_early = false;
  bool pipelines_host_copies = false;

  friend bool operator==(const ScheduleSettings&, const ScheduleSettings&) = default;
};

/// Empty where it depends on a device that is not known whether latencies are hidden. Values that
/// are none count as not set.
std::optional<ScheduleSettings> schedule_settings(const FlagSettings& settings,
                                                  const FlagContext& context);

/// Buffers that memory fencing is recommended for: all but scalars and the like, whatever the
/// program. With a higher threshold, even that of the smallest array that goes to the host, the
/// buffers between kept those arrays in HBM (docs/pgle.md).
inline constexpr Bytes kFencedFrom{std::int64_t{1} << 20};

/// Whether a flag is one that `schedule_settings` looks at.
bool decides_order(std::string_view flag);

}  // namespace spillway
