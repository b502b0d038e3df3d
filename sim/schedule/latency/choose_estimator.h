// Which estimator XLA's scheduler goes by, and whether it runs at all.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/hardware/profile.h"
#include "model/run/pgle.h"
#include "sim/schedule/latency_estimator.h"

namespace spillway {

/// XLA's flags that decide, as the user set them; empty is unset.
struct EstimatorFlags {
  std::optional<bool> latency_hiding{};  ///< xla_gpu_enable_latency_hiding_scheduler
  bool sol = true;                       ///< xla_gpu_enable_analytical_sol_latency_estimator
  bool analytical = false;               ///< xla_gpu_enable_analytical_latency_estimator
  bool has_profile = false;              ///< xla_gpu_pgle_profile_file_or_directory_path
  int optimization_level = 0;            ///< 1 and more: latency hiding everywhere
  std::int64_t partition_size = 0;       ///< of xla_gpu_analytical_latency_estimator_options
};

enum class EstimatorKind : std::uint8_t { kTshirt, kSol, kAnalytical, kProfileGuided };
std::string_view name_of(EstimatorKind kind);

struct EstimatorChoice {
  /// Empty where latency hiding is off: programs run in the order of the memory scheduler.
  std::optional<EstimatorKind> kind;
  /// XLA was to use its speed-of-light model, has no table under the device's key, and says
  /// nothing.
  bool fell_back = false;
};

/// The key of XLA's tables: "sm_90", "sm_100_GB200" (from 10.0 on with the last word of the
/// device's name).
std::string table_key(const Device& device);

/// By XLA of jaxlib 0.12: a profile goes before the analytical flag, before speed of light, before
/// T-shirt sizes. Without a flag latency hiding is on for Hopper and Blackwell where the program
/// has no collective but the common ones and no computation on the host; `=false` turns it off
/// there. Tables exist for sm_90 and sm_100_B200, so that GB200, B300 and GB300 silently go by
/// T-shirt sizes.
EstimatorChoice choose_estimator(const Program& program, const Device& device,
                                 const EstimatorFlags& flags);

/// The estimator of a choice; `measured` is the profile of one that goes by a profile.
std::unique_ptr<LatencyEstimator> make_estimator(
    EstimatorKind kind, const Program& program, const HardwareProfile& profile,
    const EstimatorFlags& flags, std::optional<ProfiledInstructions> measured = std::nullopt);

}  // namespace spillway
