#include "model/hardware/check_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "model/hardware/units_text.h"

namespace spillway {
namespace {

using Severity = Finding::Severity;

/// Collects findings; each check below is one sentence about figures.
struct Checker {
  std::vector<Finding> findings;

  template <typename... Args>
  void error(std::string_view key, fmt::format_string<Args...> text, Args&&... args) {
    findings.push_back(
        {Severity::kError, std::string(key), fmt::format(text, std::forward<Args>(args)...)});
  }
  template <typename... Args>
  void warning(std::string_view key, fmt::format_string<Args...> text, Args&&... args) {
    findings.push_back(
        {Severity::kWarning, std::string(key), fmt::format(text, std::forward<Args>(args)...)});
  }

  /// An error when `figure` exceeds `limit`.
  template <typename Q>
  void at_most(std::string_view key, const Figure<Q>& figure, Q limit,
               std::string_view limit_name) {
    if (figure.value > limit)
      error(key, "{} exceeds {}, {}", to_units_text(figure.value), limit_name,
            to_units_text(limit));
  }
  /// A warning outside [`low`, `high`].
  template <typename Q>
  void usual(std::string_view key, const Figure<Q>& figure, Q low, Q high) {
    if (figure.value < low || figure.value > high)
      warning(key, "{} is outside the usual {} to {}", to_units_text(figure.value),
              to_units_text(low), to_units_text(high));
  }
};

/// Floating-point operations of one SM in one clock; 0 where it is not known.
struct FlopsPerClock {
  std::string_view compute_capability;
  double matrix_bf16 = 0;  ///< dense; peaks of NVIDIA's data sheets / (SMs x boost clock)
  double vector_f32 = 0;   ///< 2 x the f32 FMAs of the CUDA C++ Programming Guide's table
                           ///< "Throughput of Native Arithmetic Instructions"
};

FlopsPerClock flops_per_clock(std::string_view compute_capability) {
  constexpr FlopsPerClock kKnown[] = {{"8.0", 2048, 128},  {"8.6", 0, 256},     {"8.9", 1024, 256},
                                      {"9.0", 4096, 256},  {"10.0", 8192, 256}, {"10.3", 8192, 256},
                                      {"10.7", 8192, 256}, {"12.0", 1024, 256}};
  const auto known =
      std::ranges::find(kKnown, compute_capability, &FlopsPerClock::compute_capability);
  return known == std::end(kKnown) ? FlopsPerClock{} : *known;
}

/// Peak of SMs that each do `flops_per_clock`; data sheets round clocks, hence 3 %.
void check_peak(Checker& check, const Device& device, std::string_view key,
                const Figure<FlopsPerSecond>* peak, Hertz clock, double flops_per_clock) {
  if (peak == nullptr || flops_per_clock == 0) return;
  const auto sms = static_cast<double>(device.sm_count.value.value());
  const FlopsPerSecond expected(sms * flops_per_clock * clock.value());
  const double off = ratio(peak->value, expected) - 1;
  if (std::abs(off) > 0.03)
    check.warning(key,
                  "{} is {:+.0f} % off {:.0f} SMs x {:.0f} FLOP per clock x {}, {:.1f} TFLOP/s",
                  to_units_text(peak->value), off * 100, sms, flops_per_clock, to_units_text(clock),
                  expected.value() / 1e12);
}

void check_device(Checker& check, const Device& device) {
  check.usual("device.clock", device.clock, Hertz(5e8), Hertz(4e9));
  check.at_most("device.matrix_clock", device.matrix_clock, device.clock.value * 1.02, "the clock");
  check.usual("device.l2_capacity", device.l2_capacity, Bytes(1 << 20), Bytes(1 << 30));
  check.usual("device.hbm_capacity", device.hbm_capacity, Bytes(std::int64_t{4} << 30),
              Bytes(std::int64_t{2} << 40));
  check.usual("device.hbm_bandwidth", device.hbm_bandwidth, BytesPerSecond(1e11),
              BytesPerSecond(5e13));
  check.at_most("device.reserve", device.reserve, device.hbm_capacity.value, "the HBM");
  if (device.reserve.value * 4 > device.hbm_capacity.value &&
      device.reserve.value <= device.hbm_capacity.value)
    check.warning("device.reserve", "{} is more than a quarter of the HBM",
                  to_units_text(device.reserve.value));

  const auto* bf16 = find_figure(device.matrix_peak, "bf16");
  const auto* f32 = find_figure(device.vector_peak, "f32");
  if (bf16 == nullptr) check.error("device.matrix_peak", "bf16 is missing");
  const FlopsPerClock per_clock = flops_per_clock(device.compute_capability);
  check_peak(check, device, "device.matrix_peak.bf16", bf16, device.matrix_clock.value,
             per_clock.matrix_bf16);
  for (const std::string_view type : {"tf32", "f64"})
    if (const auto* peak = find_figure(device.matrix_peak, type); peak && bf16)
      check.at_most(fmt::format("device.matrix_peak.{}", type), *peak, bf16->value, "that of bf16");
  if (const auto* f8 = find_figure(device.matrix_peak, "f8"); f8 && bf16 && f8->value < bf16->value)
    check.error("device.matrix_peak.f8", "{} is below that of bf16, {}", to_units_text(f8->value),
                to_units_text(bf16->value));
  if (f32 == nullptr) check.error("device.vector_peak", "f32 is missing");
  check_peak(check, device, "device.vector_peak.f32", f32, device.clock.value,
             per_clock.vector_f32);
}

void check_gemm_shape(Checker& check, std::string_view type, const GemmShape& shape) {
  const std::string key = fmt::format("kernels.gemm_shape.{}", type);
  const auto usual = [&](std::string_view name, auto value, auto most) {
    check.usual(fmt::format("{}.{}", key, name), Figure<decltype(value)>{value, {}},
                decltype(value)(0), most);
  };
  usual("overhead", shape.overhead, Seconds(5e-5));
  usual("depth", shape.depth, Seconds(5e-5));
  usual("operands", shape.operands, Factor(6));
  usual("result", shape.result, Factor(6));
}

void check_kernels(Checker& check, const KernelCosts& kernels) {
  check.usual("kernels.launch_floor", kernels.launch_floor, Seconds(2e-7), Seconds(5e-5));
  check.usual("kernels.gap", kernels.gap, Seconds(0), Seconds(5e-5));
  check.usual("kernels.gemm_overhead", kernels.gemm_overhead, Seconds(0), Seconds(1e-4));
  if (find_figure(kernels.gemm, "bf16") == nullptr) check.error("kernels.gemm", "bf16 is missing");
  const auto factor = [&](std::string_view name, const Figure<Factor>& figure) {
    const std::string key = fmt::format("kernels.{}", name);
    if (figure.value < Factor(1))
      check.warning(key, "{} is faster than the roofline", to_units_text(figure.value));
    else
      check.usual(key, figure, Factor(1), Factor(6));
  };
  for (const auto& [type, figure] : kernels.gemm) factor("gemm." + type, figure);
  for (const auto& [type, figure] : kernels.gemm_power) factor("gemm_power." + type, figure);
  for (const auto& [type, shape] : kernels.gemm_shape) check_gemm_shape(check, type, shape);
  factor("gemm_beside_collective", kernels.gemm_beside_collective);
  factor("attention_forward", kernels.attention_forward);
  factor("attention_backward", kernels.attention_backward);
  factor("elementwise", kernels.elementwise);
  factor("row_reduce", kernels.row_reduce);
  factor("column_reduce", kernels.column_reduce);
  factor("transpose", kernels.transpose);
  factor("copy", kernels.copy);
  check.usual("kernels.vector", kernels.vector, Factor(1), Factor(12));
}

void check_link(Checker& check, const HostLink& link, const Device& device) {
  const BytesPerSecond cap = link.cap_per_direction.value;
  check.at_most("link.cap_per_direction", link.cap_per_direction, device.hbm_bandwidth.value,
                "the HBM bandwidth");
  check.at_most("link.host_to_device", link.host_to_device, cap, "the cap of a direction");
  check.at_most("link.device_to_host", link.device_to_host, cap, "the cap of a direction");
  const BytesPerSecond h = link.host_to_device.value;
  const BytesPerSecond d = link.device_to_host.value;
  check.at_most("link.both_directions", link.both_directions, h + d, "the sum of the directions");
  // Where the host's memory bounds the link, reads alone may beat a mix: 1.6 % on GH200.
  const BytesPerSecond faster = std::max(h, d);
  if (link.both_directions.value < faster * 0.95)
    check.error("link.both_directions", "{} is below one direction alone, {}",
                to_units_text(link.both_directions.value), to_units_text(faster));
  for (const auto& [key, rate] : {std::pair("link.host_to_device", h), {"link.device_to_host", d}})
    if (rate < cap * 0.5 && rate > BytesPerSecond(0))
      check.warning(
          key, "{} is less than half of the cap, {}: a link that trained down, or pageable memory?",
          to_units_text(rate), to_units_text(cap));
  check.usual("link.copy_latency", link.copy_latency, Seconds(0), Seconds(1e-3));
  if (link.kind == LinkKind::kPcie)
    check.usual("link.cap_per_direction", link.cap_per_direction, BytesPerSecond(3e9),
                BytesPerSecond(1.3e11));
}

void check_host(Checker& check, const Host& host, const HostLink& link) {
  const auto slower_than_link = [&](std::string_view key, const Figure<BytesPerSecond>& memory,
                                    BytesPerSecond one_gpu) {
    if (memory.value < one_gpu * 0.99)  // figures of separate runs differ by that much
      check.error(key, "{} is below what one GPU alone copies, {}", to_units_text(memory.value),
                  to_units_text(one_gpu));
  };
  slower_than_link("host.memory_bandwidth", host.memory_bandwidth, link.both_directions.value);
  if (host.memory_bandwidth_read)
    slower_than_link("host.memory_bandwidth_read", *host.memory_bandwidth_read,
                     link.host_to_device.value);
  if (host.memory_bandwidth_write)
    slower_than_link("host.memory_bandwidth_write", *host.memory_bandwidth_write,
                     link.device_to_host.value);
  check.usual("host.gpus_per_cpu", host.gpus_per_cpu, Count(1), Count(8));
  check.usual("host.cpus_per_host", host.cpus_per_host, Count(1), Count(8));
  check.usual("host.memory_per_cpu", host.memory_per_cpu, Bytes(std::int64_t{16} << 30),
              Bytes(std::int64_t{8} << 40));
}

void check_collective(Checker& check, const ScaleUp& fabric, std::string_view name,
                      const CollectiveCosts& costs, double most_of_bandwidth) {
  const std::string key = fmt::format("fabric.scale_up.{}", name);
  for (const CollectiveFit& fit : costs.fits) {
    // A domain of one GPU has no groups; its fits are for hosts that somebody joins.
    const bool has_groups = fabric.domain_gpus.value > Count(1);
    if (has_groups && (fit.gpus < Count(2) || fit.gpus > fabric.domain_gpus.value))
      check.error(key, "a group of {} GPUs does not fit the domain of {}", fit.gpus.value(),
                  fabric.domain_gpus.value.value());
    if (fit.bus_bandwidth > fabric.bandwidth.value * most_of_bandwidth)
      check.error(key, "{} among {} GPUs exceeds the link, {}", to_units_text(fit.bus_bandwidth),
                  fit.gpus.value(), to_units_text(fabric.bandwidth.value));
    if (fit.few_channels && fit.few_channels->bandwidth > fit.bus_bandwidth)
      check.error(key, "a few channels among {} GPUs, {}, are faster than all, {}",
                  fit.gpus.value(), to_units_text(fit.few_channels->bandwidth),
                  to_units_text(fit.bus_bandwidth));
    if (fit.latency > Seconds(5e-3))
      check.warning(key, "a latency of {} among {} GPUs is unusually long",
                    to_units_text(fit.latency), fit.gpus.value());
  }
  if (costs.fits.empty()) check.error(key, "no group size is given");
}

void check_fabric(Checker& check, const HardwareProfile& profile) {
  const ScaleUp& fabric = profile.scale_up;
  const std::int64_t host = gpus_per_host(profile.host).value();
  const std::int64_t domain = fabric.domain_gpus.value.value();
  if (host > 0 && domain % host != 0 && host % domain != 0)
    check.warning("fabric.scale_up.domain_gpus", "{} GPUs are no whole number of hosts of {}",
                  domain, host);
  check.usual("fabric.scale_up.bandwidth", fabric.bandwidth, BytesPerSecond(1e10),
              BytesPerSecond(4e12));
  check.usual("fabric.scale_up.per_tensor", fabric.per_tensor, Seconds(0), Seconds(1e-4));
  check_collective(check, fabric, "all_gather", fabric.all_gather, 1);
  check_collective(check, fabric, "reduce_scatter", fabric.reduce_scatter, 1);
  check_collective(check, fabric, "all_reduce", fabric.all_reduce, 2);  // switches add: SHARP
  check_collective(check, fabric, "all_to_all", fabric.all_to_all, 1);
  check_collective(check, fabric, "collective_permute", fabric.collective_permute, 1);
  check.at_most("fabric.scale_out.nic_bandwidth", profile.scale_out.nic_bandwidth,
                profile.scale_out.nic_cap.value, "the line rate");
  check.at_most("fabric.scale_out.nic_cap", profile.scale_out.nic_cap, fabric.bandwidth.value,
                "the bandwidth inside a domain");
  check.usual("fabric.scale_out.latency", profile.scale_out.latency, Seconds(1e-6), Seconds(1e-3));
}

}  // namespace

std::vector<Finding> check_profile(const HardwareProfile& profile) {
  Checker check;
  check_device(check, profile.device);
  check_kernels(check, profile.kernels);
  check_link(check, profile.link, profile.device);
  check_host(check, profile.host, profile.link);
  check_fabric(check, profile);
  return std::move(check.findings);
}

}  // namespace spillway
