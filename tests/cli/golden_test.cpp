// What a person and a script see, to the byte.
#include "tests/golden.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::run_spillway;

TEST_CASE("answers stay as they are") {
  struct Row {
    const char* golden;
    const char* arguments;
  };
  const Row rows[] = {
      {"inspect/keep.txt",
       "inspect examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json"},
      {"inspect/offload_qkv.txt",
       "inspect examples/jax/dumps/offload_qkv --names examples/jax/dumps/offload_qkv/names.json"},
      {"inspect/offload_qkv.json",
       "inspect examples/jax/dumps/offload_qkv --names examples/jax/dumps/offload_qkv/names.json "
       "--json"},
      {"simulate/offload_qkv.txt", "simulate examples/jax/dumps/offload_qkv --hw gb200"},
      {"simulate/offload_qkv.json", "simulate examples/jax/dumps/offload_qkv --hw gb200 --json"},
      {"simulate/offload_all_h100.txt", "simulate examples/jax/dumps/offload_all --hw h100"},
      {"simulate/explain_query_proj.txt",
       "simulate examples/jax/dumps/offload_qkv --hw gb200 --names "
       "examples/jax/dumps/offload_qkv/names.json --explain query_proj"},
      {"simulate/explain_query_proj.json",
       "simulate examples/jax/dumps/offload_qkv --hw gb200 --names "
       "examples/jax/dumps/offload_qkv/names.json --explain query_proj --json"},
      {"plan/keep.txt",
       "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200"},
      {"plan/keep.json",
       "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 --json"},
      {"plan/keep_unnamed.txt", "plan examples/jax/dumps/keep --hw gb200"},
      {"plan/keep_explain.txt",
       "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 "
       "--explain mlpwi_0"},
      {"plan/nothing_fits.txt",
       "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 "
       "--hbm-limit 10GiB"},
      {"compare/keep_offload_qkv.txt",
       "compare examples/jax/dumps/keep examples/jax/dumps/offload_qkv --names "
       "examples/jax/dumps/keep/names.json --fail-if-peak-grows 1%"},
      {"compare/offload_qkv_keep.json",
       "compare examples/jax/dumps/offload_qkv examples/jax/dumps/keep --json"},
      {"flags/jaxlib_0_10_2.txt", "flags --jaxlib 0.10.2 --hw h100"},
      {"flags/names.json",
       "flags xla_gpu_graph_level xla_gpu_enable_pipelined_host_offloading --json"},
      {"flags/check.txt",
       "flags --hw gb200 --check '--xla_gpu_enable_latency_hidng_scheduler=true "
       "--xla_gpu_memory_limit_slop_factor=95% --xla_gpu_autotune_level=4 \\ --xla_dump_to=d'"},
      {"flags/contradiction.json",
       "flags --hw gb200 --json --check '--xla_gpu_enable_latency_hiding_scheduler=false "
       "--xla_gpu_enable_pipelined_host_offloading=true'"},
      {"plan/user_flags.txt",
       "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 "
       "--jaxlib 0.7.0 --xla-flags '--xla_gpu_enable_latency_hiding_scheduler=true "
       "--xla_gpu_enable_pipelined_host_offloading=true'"},
      {"whatif/batch.txt",
       "whatif examples/jax/dumps/keep --second examples/jax/dumps/keep_batch_32 --names "
       "examples/jax/dumps/keep/names.json --hw gb200 --batch-of-dumps 64,32 --batch 16,48,128"},
      {"whatif/batch.json",
       "whatif examples/jax/dumps/keep --second examples/jax/dumps/keep_batch_32 --names "
       "examples/jax/dumps/keep/names.json --hw gb200 --batch-of-dumps 64,32 --batch 16 --json"},
      {"whatif/offload_all.txt",
       "whatif examples/jax/dumps/offload_all --names examples/jax/dumps/offload_all/names.json "
       "--hw gb200 --flag xla_gpu_enable_pipelined_host_offloading=true --flag "
       "xla_gpu_enable_latency_hiding_scheduler=true,false"},
      {"whatif/offload_all.json",
       "whatif examples/jax/dumps/offload_all --hw gb200 --json --flag "
       "xla_gpu_enable_pipelined_host_offloading=true"},
      {"capacity/two_models.txt",
       "capacity llama3.1-8b mixtral-8x7b --hw gb200,rtxpro6000,vr200 --devices 8,64 --batch 1,4 "
       "--seq 8192 --offload-state"},
      {"hw/list.txt", "hw list"},
      {"hw/gb200.txt", "hw show gb200"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.golden);
    check_golden(row.golden, run_spillway(row.arguments).out);
  }
}

TEST_CASE("JSON keeps its contract") {
  const auto inspect =
      nlohmann::json::parse(run_spillway("inspect examples/jax/dumps/offload_qkv --json").out);
  for (const char* key :
       {"argument_bytes", "output_bytes", "alias_bytes", "temp_bytes", "total_device_bytes",
        "live_peak_bytes", "no_fragmentation_bytes", "largest_allocation_bytes", "host_temp_bytes",
        "host_argument_bytes", "host_output_bytes"}) {
    CAPTURE(key);
    CHECK(inspect["memory"][key].is_number_integer());
  }
  for (const char* key : {"name", "instructions", "computations", "scheduled"})
    CHECK(inspect["program"].contains(key));
  for (const char* key : {"id", "names", "layers", "bytes_per_layer", "total_bytes", "placement",
                          "defined_at", "last_forward_use", "first_backward_use", "last_use"})
    CHECK(inspect["residuals"][0].contains(key));
  for (const char* key : {"dot_flops_per_step", "flops_per_step", "xla_cost_analysis_flops",
                          "transfers", "live_at_peak", "hbm_curve", "diagnostics"})
    CHECK(inspect.contains(key));
  const auto simulate = nlohmann::json::parse(
      run_spillway("simulate examples/jax/dumps/offload_qkv --hw gb200 --json").out);
  for (const char* key :
       {"step_seconds", "compute_busy_seconds", "d2h_busy_seconds", "h2d_busy_seconds",
        "exposed_d2h_seconds", "exposed_h2d_seconds", "exposed_collective_seconds",
        "peak_device_bytes", "streams", "exposed", "assumptions"})
    CHECK(simulate.contains(key));
  const auto plan =
      nlohmann::json::parse(run_spillway("plan examples/jax/dumps/keep --hw gb200 --json").out);
  for (const char* key : {"best", "lower_bound_seconds", "gap", "alternatives", "flags",
                          "environment", "maxtext", "reasons"})
    CHECK(plan.contains(key));
  for (const char* key : {"policy", "batch", "seq", "flags", "step_seconds", "peak_device_bytes",
                          "host_bytes", "fits", "smallest_fraction", "dot_flops_per_step",
                          "d2h_bytes_per_step", "h2d_bytes_per_step", "exposed_copy_seconds"})
    CHECK(plan["best"].contains(key));
  const auto whatif =
      nlohmann::json::parse(run_spillway("whatif examples/jax/dumps/keep --hw gb200 --json --flag "
                                         "xla_gpu_enable_latency_hiding_scheduler=false")
                                .out);
  REQUIRE(whatif["cases"].size() == 2);
  for (const auto& [key, value] : plan["best"].items()) CHECK(whatif["cases"][1].contains(key));
  CHECK(whatif["cases"][1]["flags"]["xla_gpu_enable_latency_hiding_scheduler"] == "false");
}

}  // namespace
}  // namespace spillway
