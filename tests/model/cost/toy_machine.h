// A machine whose answers fit in the head.
#pragma once

#include "model/hardware/profile.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

/// 8 flop/s, 32 B/s of HBM, no launch cost, every factor 1; operations on elements cost nothing. To
/// the host 8 B/s, from it 16 B/s. Domains of 4 GPUs at 4 B/s a GPU, 2 of them a host; beyond, NICs
/// of 1 B/s. A collective starts within a second a group of 2, three seconds a group of 4; a
/// network step takes ten.
inline HardwareProfile toy_machine() {
  HardwareProfile toy;
  toy.id = "toy";
  const auto figure = [](auto value) { return Figure<decltype(value)>{value, {}}; };
  toy.device.hbm_bandwidth = figure(BytesPerSecond(32));
  for (const char* type : {"bf16", "tf32"})
    toy.device.matrix_peak[type] = figure(FlopsPerSecond(8));
  toy.device.matrix_peak["f8"] = figure(FlopsPerSecond(16));
  toy.device.vector_peak["f32"] = figure(FlopsPerSecond(8));
  KernelCosts& kernels = toy.kernels;
  kernels.gemm["bf16"] = figure(Factor(1));
  for (Figure<Factor>* factor :
       {&kernels.gemm_beside_collective, &kernels.attention_forward, &kernels.attention_backward,
        &kernels.elementwise, &kernels.row_reduce, &kernels.column_reduce, &kernels.transpose,
        &kernels.copy})
    *factor = figure(Factor(1));
  toy.link.host_to_device = figure(BytesPerSecond(16));
  toy.link.device_to_host = figure(BytesPerSecond(8));
  toy.host.gpus_per_cpu = figure(Count(2));
  toy.host.cpus_per_host = figure(Count(1));
  toy.scale_up.domain_gpus = figure(Count(4));
  CollectiveCosts costs;
  costs.fits = {{Count(2), Seconds(1), BytesPerSecond(4)},
                {Count(4), Seconds(3), BytesPerSecond(4)}};
  for (CollectiveCosts* kind :
       {&toy.scale_up.all_gather, &toy.scale_up.reduce_scatter, &toy.scale_up.all_reduce,
        &toy.scale_up.all_to_all, &toy.scale_up.collective_permute})
    *kind = costs;
  toy.scale_out.nic_bandwidth = figure(BytesPerSecond(1));
  toy.scale_out.latency = figure(Seconds(10));
  return toy;
}

}  // namespace spillway::testing
