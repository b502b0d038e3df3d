// The memory that XLA:GPU aims to stay within while it compiles. It is an aim: the latency-hiding
// scheduler only decides between equals by it, and rematerialisation gives up above it.
//
//   HBM  |--------------- base ---------------|----|
//        |-- arguments and results --|- 95 % -|5%|
// Source: GetSchedulerMemoryLimit and CreateRematOpts in xla/service/gpu.
#pragma once

#include "model/memory/memory_report.h"

namespace spillway {

/// What XLA starts from when it compiles without a device: 0.8 of the HBM. On a live device it is
/// the size of JAX's pool.
Bytes ahead_of_time_base(Bytes hbm);

/// The limit of the scheduler, for temporaries: (base - arguments and results on the device) x
/// 0.95, where `slop_percent` is xla_gpu_memory_limit_slop_factor; zero where these alone exceed
/// the base.
Bytes scheduler_limit(const MemoryTotals& totals, Bytes base, int slop_percent = 95);

/// The limit of rematerialisation, for everything it counts: the scheduler's, and what it left out.
Bytes remat_limit(const MemoryTotals& totals, Bytes base, int slop_percent = 95);

}  // namespace spillway
