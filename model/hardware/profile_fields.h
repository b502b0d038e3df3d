// The fields of a profile in the order of the file, written down once. Whoever reads, writes or
// prints a profile visits them, so that no two of them can disagree about what there is.
#pragma once

#include <span>
#include <string_view>

#include "model/hardware/profile.h"

namespace spillway {

inline constexpr std::string_view kProfileSchema = "spillway.hardware/1";

/// The number types a table may have, in the order they are printed; the first is required.
inline constexpr std::string_view kMatrixTypes[] = {"bf16", "f16", "tf32", "f64", "f8", "f4", "s8"};
inline constexpr std::string_view kVectorTypes[] = {"f32", "bf16", "f16", "f64"};

template <typename Device, typename Visitor>
void visit_device(Device& device, Visitor& visit) {
  visit.field("xla_name", device.xla_name);
  visit.field("compute_capability", device.compute_capability);
  visit.field("sm_count", device.sm_count);
  visit.field("clock", device.clock);
  visit.field("matrix_clock", device.matrix_clock);
  visit.field("l2_capacity", device.l2_capacity);
  visit.field("hbm_capacity", device.hbm_capacity);
  visit.field("hbm_bandwidth", device.hbm_bandwidth);
  visit.field("reserve", device.reserve);
  visit.table("matrix_peak", device.matrix_peak, kMatrixTypes);
  visit.table("vector_peak", device.vector_peak, kVectorTypes);
}

template <typename Kernels, typename Visitor>
void visit_kernels(Kernels& kernels, Visitor& visit) {
  visit.field("launch_floor", kernels.launch_floor);
  visit.field("gap", kernels.gap);
  visit.field("gemm_overhead", kernels.gemm_overhead);
  visit.table("gemm", kernels.gemm, kMatrixTypes);
  visit.optional_table("gemm_power", kernels.gemm_power, kMatrixTypes);
  visit.optional_table("gemm_shape", kernels.gemm_shape, kMatrixTypes);
  visit.field("gemm_beside_collective", kernels.gemm_beside_collective);
  visit.field("attention_forward", kernels.attention_forward);
  visit.field("attention_backward", kernels.attention_backward);
  visit.field("elementwise", kernels.elementwise);
  visit.field("row_reduce", kernels.row_reduce);
  visit.field("column_reduce", kernels.column_reduce);
  visit.field("transpose", kernels.transpose);
  visit.field("copy", kernels.copy);
  visit.field("vector", kernels.vector);
}

template <typename Link, typename Visitor>
void visit_link(Link& link, Visitor& visit) {
  visit.field("kind", link.kind);
  visit.field("cap_per_direction", link.cap_per_direction);
  visit.field("host_to_device", link.host_to_device);
  visit.field("device_to_host", link.device_to_host);
  visit.field("both_directions", link.both_directions);
  visit.field("copy_latency", link.copy_latency);
}

template <typename Host, typename Visitor>
void visit_host(Host& host, Visitor& visit) {
  visit.field("gpus_per_cpu", host.gpus_per_cpu);
  visit.field("cpus_per_host", host.cpus_per_host);
  visit.field("memory_bandwidth", host.memory_bandwidth);
  visit.field("memory_bandwidth_read", host.memory_bandwidth_read);
  visit.field("memory_bandwidth_write", host.memory_bandwidth_write);
  visit.field("memory_per_cpu", host.memory_per_cpu);
}

template <typename Fabric, typename Visitor>
void visit_scale_up(Fabric& fabric, Visitor& visit) {
  visit.field("kind", fabric.kind);
  visit.field("domain_gpus", fabric.domain_gpus);
  visit.field("bandwidth", fabric.bandwidth);
  visit.field("per_tensor", fabric.per_tensor);
  visit.field("all_gather", fabric.all_gather);
  visit.field("reduce_scatter", fabric.reduce_scatter);
  visit.field("all_reduce", fabric.all_reduce);
  visit.field("all_to_all", fabric.all_to_all);
  visit.field("collective_permute", fabric.collective_permute);
}

template <typename Fabric, typename Visitor>
void visit_scale_out(Fabric& fabric, Visitor& visit) {
  visit.field("nic_cap", fabric.nic_cap);
  visit.field("nic_bandwidth", fabric.nic_bandwidth);
  visit.field("latency", fabric.latency);
}

/// Calls `visit.field(key, value)`, `visit.table(key, table, types)` or, for one that may be left
/// out, `visit.optional_table(key, table, types)` for each field and
/// `visit.section(key, visit_inside)` around those that lie deeper. `Profile` may be const.
template <typename Profile, typename Visitor>
void visit_profile(Profile& profile, Visitor& visit) {
  visit.field("id", profile.id);
  visit.field("name", profile.name);
  visit.section("device", [&] { visit_device(profile.device, visit); });
  visit.section("kernels", [&] { visit_kernels(profile.kernels, visit); });
  visit.section("link", [&] { visit_link(profile.link, visit); });
  visit.section("host", [&] { visit_host(profile.host, visit); });
  visit.section("fabric", [&] {
    visit.section("scale_up", [&] { visit_scale_up(profile.scale_up, visit); });
    visit.section("scale_out", [&] { visit_scale_out(profile.scale_out, visit); });
  });
}

}  // namespace spillway
