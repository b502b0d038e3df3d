// A profile whose figures fit in the head: 8 FLOP/s, 32 B/s of memory, a link of 4 B/s each way.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace spillway::testing {

inline constexpr std::string_view kToyProfile = R"(schema: spillway.hardware/1
id: toy
name: "Toy machine"
device:
  xla_name: "Toy GPU"
  compute_capability: "9.9"
  sm_count: {value: 1, origin: specification, source: toy}
  clock: {value: 4 Hz, origin: specification, source: toy}
  matrix_clock: {value: 4 Hz, origin: specification, source: toy}
  l2_capacity: {value: 16 B, origin: specification, source: toy}
  hbm_capacity: {value: 1024 B, origin: specification, source: toy}
  hbm_bandwidth: {value: 32 B/s, origin: specification, source: toy}
  reserve: {value: 64 B, origin: inferred, source: toy}
  matrix_peak:
    bf16: {value: 8 FLOP/s, origin: specification, source: toy}
  vector_peak:
    f32: {value: 8 FLOP/s, origin: specification, source: toy}
kernels:
  launch_floor: {value: 0 s, origin: inferred, source: toy}
  gap: {value: 0 s, origin: inferred, source: toy}
  gemm_overhead: {value: 0 s, origin: inferred, source: toy}
  gemm:
    bf16: {value: 1 x, origin: inferred, source: toy}
  gemm_beside_collective: {value: 1 x, origin: inferred, source: toy}
  attention_forward: {value: 1 x, origin: inferred, source: toy}
  attention_backward: {value: 1 x, origin: inferred, source: toy}
  elementwise: {value: 1 x, origin: inferred, source: toy}
  row_reduce: {value: 1 x, origin: inferred, source: toy}
  column_reduce: {value: 1 x, origin: inferred, source: toy}
  transpose: {value: 1 x, origin: inferred, source: toy}
  copy: {value: 1 x, origin: inferred, source: toy}
  vector: {value: 1 x, origin: inferred, source: toy}
link:
  kind: pcie
  cap_per_direction: {value: 4 B/s, origin: specification, source: toy}
  host_to_device: {value: 4 B/s, origin: measured, source: toy}
  device_to_host: {value: 2 B/s, origin: measured, source: toy}
  both_directions: {value: 5 B/s, origin: measured, source: toy}
  copy_latency: {value: 1 s, origin: inferred, source: toy}
host:
  gpus_per_cpu: {value: 2, origin: specification, source: toy}
  cpus_per_host: {value: 1, origin: specification, source: toy}
  memory_bandwidth: {value: 6 B/s, origin: measured, source: toy}
  memory_per_cpu: {value: 4096 B, origin: specification, source: toy}
fabric:
  scale_up:
    kind: nvlink
    domain_gpus: {value: 2, origin: specification, source: toy}
    bandwidth: {value: 16 B/s, origin: specification, source: toy}
    per_tensor: {value: 0 s, origin: inferred, source: toy}
    all_gather:
      origin: measured
      source: toy
      fits:
        - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}
    reduce_scatter: {origin: measured, source: toy, fits: [{gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}]}
    all_reduce: {origin: measured, source: toy, fits: [{gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}]}
    all_to_all: {origin: measured, source: toy, fits: [{gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}]}
    collective_permute: {origin: measured, source: toy, fits: [{gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}]}
  scale_out:
    nic_cap: {value: 2 B/s, origin: specification, source: toy}
    nic_bandwidth: {value: 2 B/s, origin: inferred, source: toy}
    latency: {value: 2 s, origin: inferred, source: toy}
)";

/// The toy profile with the only `from` in it replaced.
inline std::string toy_with(std::string_view from, std::string_view to) {
  std::string text(kToyProfile);
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, "not in the toy profile: " << from);
  REQUIRE_MESSAGE(text.find(from, at + 1) == std::string::npos,
                  "twice in the toy profile: " << from);
  return text.replace(at, from.size(), to);
}

}  // namespace spillway::testing
