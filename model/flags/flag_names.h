// The names of XLA's flags that some code of ours decides by, so that a misspelt one does not
// compile. All names that XLA knows, by version, are in known_flags.h; what those that matter here
// mean is in flag_table.h.
#pragma once

#include <string>
#include <string_view>

namespace spillway::flag {

// Which scheduler, and by which costs.
inline constexpr std::string_view kLatencyHiding = "xla_gpu_enable_latency_hiding_scheduler";
inline constexpr std::string_view kSpeedOfLight = "xla_gpu_enable_analytical_sol_latency_estimator";
inline constexpr std::string_view kAnalytical = "xla_gpu_enable_analytical_latency_estimator";
inline constexpr std::string_view kEstimatorOptions =
    "xla_gpu_analytical_latency_estimator_options";
inline constexpr std::string_view kProfile = "xla_gpu_pgle_profile_file_or_directory_path";
inline constexpr std::string_view kProfileChecker = "xla_gpu_pgle_accuracy_checker";

// Its limits.
inline constexpr std::string_view kSlopFactor = "xla_gpu_memory_limit_slop_factor";
inline constexpr std::string_view kAsyncComputes =
    "xla_gpu_experimental_parallel_async_compute_limit";
inline constexpr std::string_view kCollectives =
    "xla_gpu_experimental_parallel_collective_overlap_limit";
inline constexpr std::string_view kScaleUpCollectives =
    "xla_gpu_experimental_parallel_scale_up_collective_overlap_limit";
inline constexpr std::string_view kEarlyCollectives =
    "xla_gpu_experimental_collective_start_as_early_as_possible";
inline constexpr std::string_view kSelectiveMemcpy =
    "xla_gpu_experimental_enable_selective_memcpy_overlap";
inline constexpr std::string_view kFencing =
    "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes";
inline constexpr std::string_view kFencingSlack =
    "xla_gpu_experimental_scheduler_memory_fencing_slack_windows";

// Offloading and passes.
inline constexpr std::string_view kPipelinedOffloading = "xla_gpu_enable_pipelined_host_offloading";
inline constexpr std::string_view kHostMemoryOffloading = "xla_gpu_enable_host_memory_offloading";
inline constexpr std::string_view kNoHostCompute = "xla_disable_automatic_host_compute_offload";
inline constexpr std::string_view kDisabledPasses = "xla_disable_hlo_passes";
inline constexpr std::string_view kEnabledPassesOnly = "xla_enable_hlo_passes_only";
inline constexpr std::string_view kBackendOptions = "xla_backend_extra_options";

// Beside the program.
inline constexpr std::string_view kNcclUserBuffers = "xla_gpu_enable_nccl_user_buffers";
inline constexpr std::string_view kCommandBuffer = "xla_gpu_enable_command_buffer";
inline constexpr std::string_view kDumpAsText = "xla_dump_hlo_as_text";

/// "--name=value", as it stands in XLA_FLAGS.
inline std::string set(std::string_view name, std::string_view value) {
  std::string text = "--";
  text.append(name).append("=").append(value);
  return text;
}

}  // namespace spillway::flag
