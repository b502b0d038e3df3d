// The time of a kernel or a copy from its work and a machine: a roofline, corrected by one factor a
// class of kernels. Collectives are collective.h.
#pragma once

#include "model/cost/cost.h"
#include "model/cost/work.h"
#include "model/hardware/profile.h"

namespace spillway {

/// For one kernel or copy alone on the device, with the figures of the profile:
///   product  = max(launches x launch_floor, overhead + factor x roofline)
///     roofline = max(matrix flops / matrix_peak[type], vector flops / vector_peak,
///                    bytes / hbm_bandwidth)
///   element  = launches x launch_floor + (memory^4 + arithmetic^4)^(1/4)
///     memory     = factor x bytes / hbm_bandwidth
///     arithmetic = vector x element operations / vector_peak
///   link     = max(bytes to the device / host_to_device, bytes to the host / device_to_host)
///   time     = product or element      within the device
///              copy_latency + link     for a copy across the host link
///              max(kernel, link)       for a kernel that reaches into host memory
/// Matrix products and attention are products, everything else is an element kernel. overhead is
/// gemm_overhead for matrix products, else 0. Products of a type with a gemm_shape take
/// gemm_time.h instead. factor is the one of KernelCosts for the class of the
/// kernel (KernelClass), for matrix products by their type. Matrix flops are those of dots, and of
/// attention with its mask taken into account. A type without a matrix peak takes the vector peak
/// if it is f32, else the peak of bf16. Element operations: element_ops.h.
/// Holds for fusions, matrix products, attention, and for copies larger than the caches. A sort is
/// a lower bound (one pass over memory), and so is whatever is unknown (Bound::kUnknown).
/// From: rooflines and factors of facts measured on A100, H100, B200. Why, and how good:
/// docs/cost-model.md#roofline
Cost roofline(const Work& work, const HardwareProfile& profile);

}  // namespace spillway
