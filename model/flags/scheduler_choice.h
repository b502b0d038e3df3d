// Whether XLA's GPU compiler hides latencies, and by which costs it then orders: the one place that
// knows. The scheduler that is re-created (sim/schedule), the check of flags and the diagnostics
// all ask here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/hardware/profile.h"
#include "model/program/program.h"

namespace spillway {

/// The flags that decide, as they were set; without any, the defaults of jaxlib 0.12.
struct SchedulerFlags {
  std::optional<bool> latency_hiding{};  ///< xla_gpu_enable_latency_hiding_scheduler; empty: unset
  bool speed_of_light = true;            ///< xla_gpu_enable_analytical_sol_latency_estimator
  bool analytical = false;               ///< xla_gpu_enable_analytical_latency_estimator
  bool has_profile = false;  ///< xla_gpu_pgle_profile_file_or_directory_path, one that XLA can read
  int optimization_level = 0;  ///< 1 and more: latency hiding everywhere
};

/// A GPU as XLA tells it from others.
struct GpuModel {
  std::string compute_capability;  ///< "10.0"
  std::string xla_name;            ///< "NVIDIA GB200"
};
GpuModel gpu_model(const Device& device);

/// The key of XLA's tables: "sm_90", "sm_100_GB200" (of 10.0 with the last word of the name).
std::string table_key(const GpuModel& gpu);

/// What XLA asks of a program before it takes its speed-of-light model by itself: no collective but
/// the common ones, and no computation on the host.
bool has_only_common_parts(const Program& program);

enum class BelievedCosts : std::uint8_t {
  kTShirt,        ///< constants by kind of instruction, XLA's "T-shirt sizes"
  kSpeedOfLight,  ///< tables and models of kernels
  kAnalytical,
  kProfile,  ///< what a profile says, and others where it says nothing
};
std::string_view name_of(BelievedCosts costs);

struct SchedulerChoice {
  /// Else programs run in the order of the memory scheduler, and no costs are believed.
  bool hides_latencies = false;
  /// Empty where it depends on the device, and that is not known.
  std::optional<BelievedCosts> costs = BelievedCosts::kTShirt;
  /// What stands in where a profile says nothing; without a profile the same as `costs`.
  std::optional<BelievedCosts> rest = BelievedCosts::kTShirt;
  /// XLA was to take its speed-of-light model, has no table of matrix products under the device's
  /// key, and takes T-shirt sizes without saying so.
  bool lacks_table = false;

  bool goes_by_profile() const { return hides_latencies && costs == BelievedCosts::kProfile; }

  friend bool operator==(const SchedulerChoice&, const SchedulerChoice&) = default;
};

/// Latency hiding: what its flag says; else on with a profile; else on where XLA takes its
/// speed-of-light model by itself: Hopper and Blackwell of data centres (compute capability 9 and
/// 10), the flag of that model on, `common_parts_only`. So it is off before Hopper and for 12.0.
/// Costs: a profile goes before the analytical model, before speed of light, before T-shirt sizes.
/// Tables exist for sm_90 and sm_100_B200: GB200, B300 and GB300 go by T-shirt sizes.
///
/// Empty where whether latencies are hidden depends on a device that is not known.
/// Source: IsLHSEnabled and GetLatencyEstimator in xla/service/gpu/gpu_hlo_schedule.cc,
/// SolLatencyEstimator::IsSupportedForModule; and what jaxlib 0.12.0.1 compiled for eight devices
/// under these flags (docs/schedule.md).
std::optional<SchedulerChoice> choose_scheduler(const SchedulerFlags& flags,
                                                const std::optional<GpuModel>& gpu,
                                                bool common_parts_only = true);
/// Of a program, on a device that is known.
SchedulerChoice choose_scheduler(const SchedulerFlags& flags, const Device& device,
                                 const Program& program);

}  // namespace spillway
