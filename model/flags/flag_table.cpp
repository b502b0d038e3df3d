#include "model/flags/flag_table.h"

#include <algorithm>

namespace spillway {
namespace {

constexpr JaxlibVersion kAlways = {};
constexpr JaxlibVersion v(int a, int b, int c) { return {{a, b, c, 0}}; }

constexpr std::string_view kScheduling = "scheduling";
constexpr std::string_view kOffloading = "host offloading";
constexpr std::string_view kPasses = "compiler passes";
constexpr std::string_view kCollectives = "collectives";
constexpr std::string_view kLoops = "loops and launches";

constexpr std::string_view kOverlapCost = "memory: what is in flight stays allocated";
constexpr std::string_view kCombineMeaning =
    "collectives of this kind are combined into one as long as it moves no more than this many "
    "bytes";
constexpr std::string_view kCombineCost =
    "larger: fewer launches, but the first byte waits for the last producer and buffers are "
    "larger";
constexpr std::string_view kPipelineMeaning =
    "moves collectives of this kind across iterations of a loop; default follows the optimisation "
    "level";
constexpr std::string_view kPipelineCost = "memory: what was moved ahead stays in the loop's carry";
constexpr std::string_view kPipelineValues = "default, off, on, explicit, true, false";

// clang-format off
constexpr FlagInfo kFlags[] = {
    {kScheduling, "xla_gpu_enable_latency_hiding_scheduler", true,
     {{{kAlways, "false"}}},
     "orders instructions so that copies and collectives run beside kernels; unset it is on for "
     "Hopper and Blackwell since 0.7.2, and false turns it off there",
     "memory: unrolled layers may need several times as much"},
    {kScheduling, "xla_gpu_enable_analytical_sol_latency_estimator", false,
     {{{kAlways, "false"}, {v(0, 7, 2), "true"}}},
     "the scheduler believes speed-of-light times; false, with latency hiding unset, turns latency "
     "hiding off as well",
     "none; a host copy counts 5 ms whatever its size"},
    {kScheduling, "xla_gpu_enable_analytical_latency_estimator", false,
     {{{kAlways, "false"}}},
     "the scheduler believes analytical times; wins over the speed-of-light estimator",
     "a host copy counts 5 us whatever its size, so hardly anything is put behind it"},
    {kScheduling, "xla_gpu_analytical_latency_estimator_options", false,
     {{{kAlways, "all -1"}}},
     "figures of the network for the two estimators above; -1 is XLA's own", "none"},
    {kScheduling, "xla_gpu_memory_limit_slop_factor", false,
     {{{kAlways, "95"}}},
     "percent of the free pool that the scheduler aims to stay within; it decides ties only",
     "lower: less memory at the price of exposed copies"},
    {kScheduling, "xla_gpu_experimental_parallel_async_compute_limit", false,
     {{{kAlways, "2"}}},
     "straight-line host copies and asynchronous kernels in flight; copies of slices in loops have "
     "no limit",
     kOverlapCost},
    {kScheduling, "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes", false,
     {{{kAlways, "-1"}}},
     "readers of a buffer of this size or more may not be put off behind later windows of copies "
     "and collectives; -1 is off, 0 one percent of the scheduler's limit",
     "time: copies may lose what would have hidden them"},
    {kScheduling, "xla_gpu_experimental_scheduler_memory_fencing_slack_windows", false,
     {{{kAlways, "1"}}},
     "windows that fencing lets a reader wait", "larger: more memory, fewer exposed copies"},
    {kScheduling, "xla_gpu_experimental_enable_selective_memcpy_overlap", false,
     {{{kAlways, "false"}}},
     "copies within HBM are hidden behind compute-bound kernels only", "none known"},
    {kScheduling, "xla_gpu_pgle_profile_file_or_directory_path", false,
     {{{kAlways, ""}}},
     "the scheduler believes the times of this profile, and turns on for it; by default it has no "
     "idea what a host copy takes",
     "as good as the profile: see `spillway plan --pgle`"},
    {kScheduling, "xla_gpu_pgle_accuracy_checker", false,
     {{{kAlways, "PGLE_STRICTNESS_LEVEL_WARN"}}},
     "what happens when the profile lacks instructions", "none",
     "PGLE_STRICTNESS_LEVEL_OFF, PGLE_STRICTNESS_LEVEL_WARN, PGLE_STRICTNESS_LEVEL_ERROR"},
    {kScheduling, "xla_gpu_enable_highest_priority_async_stream", false,
     {{{kAlways, "true"}}},
     "asynchronous work runs in streams of the highest priority", "none"},
    {kScheduling, "xla_dump_latency_hiding_schedule", false,
     {{{kAlways, "false"}}},
     "dumps what the scheduler believed and chose", "none"},

    {kOffloading, "xla_gpu_enable_pipelined_host_offloading", false,
     {{{kAlways, "false"}}},
     "moves offloads into the next and reloads into the previous iteration of a loop, so that they "
     "are hidden across its end",
     "memory: a slice more of each tensor in the loop's carry"},
    {kOffloading, "xla_gpu_enable_host_memory_offloading", false,
     {{{kAlways, "false"}}},
     "lets XLA's rematerialisation offload what it would recompute; it takes HBM's rate for the "
     "link's, and moves nothing between the loops of a scan",
     "time: copies that it believes hidden are not"},
    {kOffloading, "xla_disable_automatic_host_compute_offload", false,
     {{{kAlways, "false"}}},
     "an error, in place of a slow step, when something computes on an array in host memory",
     "none"},
    {kOffloading, "xla_allow_h2h_copy_when_automatic_host_compute_offload_disabled", false,
     {{{kAlways, "false"}}},
     "with the flag above: lets copies from host to host pass", "none"},

    {kPasses, "xla_disable_hlo_passes", false,
     {{{kAlways, ""}}},
     "=rematerialization keeps XLA from recomputing on its own: it counts pinned host memory as "
     "HBM. Given twice, both lists hold; a name that is no pass is passed over in silence",
     "without that pass nothing recomputes when a step really exceeds the limit"},
    {kPasses, "xla_gpu_enable_triton_gemm", true,
     {{{kAlways, "true"}}},
     "matrix products as Triton fusions where they are faster than cuBLAS", "compile time"},
    {kPasses, "xla_gpu_autotune_level", true,
     {{{kAlways, "4"}}},
     "how hard kernels are tuned, 0 to 5", "compile time"},
    {kPasses, "xla_allow_excess_precision", false,
     {{{kAlways, "true"}}},
     "lets XLA leave out roundings to narrower types", "none"},

    {kCollectives, "xla_gpu_experimental_parallel_collective_overlap_limit", false,
     {{{kAlways, "1"}}},
     "collectives in flight at once", kOverlapCost},
    {kCollectives, "xla_gpu_experimental_parallel_scale_up_collective_overlap_limit", false,
     {{{kAlways, "1"}}},
     "the same for collectives within one NVLink domain; 0 is no limit", kOverlapCost},
    {kCollectives, "xla_gpu_experimental_collective_start_as_early_as_possible", false,
     {{{kAlways, "false"}}},
     "starts collectives early where more than one may be in flight", kOverlapCost},
    {kCollectives, "xla_gpu_all_gather_combine_threshold_bytes", false,
     {{{kAlways, "31457280"}, {v(0, 4, 35), "31457287"}}}, kCombineMeaning, kCombineCost},
    {kCollectives, "xla_gpu_all_reduce_combine_threshold_bytes", true,
     {{{kAlways, "31457280"}, {v(0, 4, 35), "31457287"}}}, kCombineMeaning, kCombineCost},
    {kCollectives, "xla_gpu_reduce_scatter_combine_threshold_bytes", true,
     {{{kAlways, "31457280"}, {v(0, 4, 35), "31457287"}}}, kCombineMeaning, kCombineCost},
    {kCollectives, "xla_gpu_collective_permute_combine_threshold_bytes", false,
     {{{kAlways, "31457287"}}}, kCombineMeaning, kCombineCost},
    {kCollectives, "xla_gpu_pipeline_all_gather", true,
     {{{kAlways, "default"}}}, kPipelineMeaning, kPipelineCost, kPipelineValues},
    {kCollectives, "xla_gpu_pipeline_all_reduce", true,
     {{{kAlways, "default"}}}, kPipelineMeaning, kPipelineCost, kPipelineValues},
    {kCollectives, "xla_gpu_pipeline_reduce_scatter", true,
     {{{kAlways, "on"}}}, kPipelineMeaning, kPipelineCost, kPipelineValues},
    {kCollectives, "xla_gpu_enable_nccl_user_buffers", false,
     {{{kAlways, "false"}}},
     "NCCL works on the program's own buffers, from a second pool",
     "memory: the second pool comes out of the same HBM"},

    {kLoops, "xla_gpu_enable_while_loop_double_buffering", true,
     {{{kAlways, "false"}}},
     "unrolls loops by two, so that carries are not copied and work of two iterations overlaps",
     "memory: slices of two iterations; compile time"},
    {kLoops, "xla_gpu_enable_while_loop_unrolling", false,
     {{{kAlways, "WHILE_LOOP_UNROLLING_AUTO_UNROLL"}}},
     "the same by name of the strategy; unrolled in full, a scan loses what keeps its memory flat",
     "memory and compile time",
     "WHILE_LOOP_UNROLLING_NO_UNROLL, WHILE_LOOP_UNROLLING_DOUBLE_BUFFER, "
     "WHILE_LOOP_UNROLLING_FULL_UNROLL, WHILE_LOOP_UNROLLING_AUTO_UNROLL, "
     "WHILE_LOOP_UNROLLING_MANUAL_UNROLL"},
    {kLoops, "xla_gpu_enable_command_buffer", false,
     {{{kAlways, "by version"}}},
     "what is recorded into CUDA graphs; each host copy splits a graph. An empty value turns them "
     "off, + and - change the default list",
     "memory of the graphs, outside of JAX's pool"},
    {kLoops, "xla_gpu_graph_min_graph_size", false,
     {{{kAlways, "5"}}},
     "commands below which nothing is recorded", "none"},
};

constexpr GoneFlag kGone[] = {
    {"xla_gpu_enable_async_all_gather", "collectives are asynchronous by default"},
    {"xla_gpu_enable_async_all_reduce", "collectives are asynchronous by default"},
    {"xla_gpu_enable_async_all_to_all", "collectives are asynchronous by default"},
    {"xla_gpu_enable_async_collective_permute", "collectives are asynchronous by default"},
    {"xla_gpu_enable_async_collectives", "collectives are asynchronous by default"},
    {"xla_gpu_enable_async_reduce_scatter", "collectives are asynchronous by default"},
    {"xla_gpu_enable_pipelined_all_gather", "xla_gpu_pipeline_all_gather=on"},
    {"xla_gpu_enable_pipelined_all_reduce", "xla_gpu_pipeline_all_reduce=on"},
    {"xla_gpu_enable_pipelined_collectives",
     "xla_gpu_pipeline_all_gather, _all_reduce and _reduce_scatter"},
    {"xla_gpu_enable_pipelined_reduce_scatter", "xla_gpu_pipeline_reduce_scatter=on"},
    {"xla_gpu_enable_triton_softmax_fusion", "such fusions are made by default"},
    {"xla_gpu_graph_level", "xla_gpu_enable_command_buffer"},
    {"xla_gpu_lhs_enable_gpu_async_tracker", "it is always on"},
    {"xla_gpu_simplify_all_fp_conversions", "xla_allow_excess_precision, which is on by default"},
};

constexpr EnvironmentInfo kEnvironment[] = {
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", "0.75",
     "share of the HBM that JAX's pool takes; since 0.4.35 also called XLA_CLIENT_MEM_FRACTION, and "
     "setting both is an error",
     "what is left holds CUDA's context, NCCL's buffers and workspaces of libraries"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "true",
     "takes the pool at the start; false lets it grow",
     "a pool that grows falls into pieces, and one large block may not fit"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "default",
     "default and bfc: one pool; platform: asks CUDA each time; cuda_async: CUDA's own pool",
     "platform is slow"},
    {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "grows",
     "size of the second pool that NCCL's user buffers come from", "HBM"},
    {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", "64",
     "GiB of pinned host memory for each local device",
     "the host's memory, as many times as it has devices"},
    {"XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE", "false",
     "pins the whole of it at the start, and makes 16 the default above",
     "start-up time and the host's memory"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "8",
     "hardware queues to a device: with 1, kernels and copies start in the order they were issued "
     "in, and streams may wait for each other",
     "fewer: copies may start late"},
    {"XLA_FLAGS", "",
     "what `spillway flags --check` looks at", "a name that XLA does not know ends the process"},
};
// clang-format on

}  // namespace

std::span<const FlagInfo> flag_table() { return kFlags; }

const FlagInfo* find_flag(std::string_view name) {
  const auto found = std::ranges::find(kFlags, name, &FlagInfo::name);
  return found == std::end(kFlags) ? nullptr : &*found;
}

std::string_view default_of(const FlagInfo& flag, const JaxlibVersion& version) {
  std::string_view value;
  for (const FlagDefault& from : flag.defaults)
    if (from.value != nullptr && from.since <= version) value = from.value;
  return value;
}

const GoneFlag* find_gone_flag(std::string_view name) {
  const auto found = std::ranges::find(kGone, name, &GoneFlag::name);
  return found == std::end(kGone) ? nullptr : &*found;
}

std::span<const EnvironmentInfo> environment_table() { return kEnvironment; }

}  // namespace spillway
