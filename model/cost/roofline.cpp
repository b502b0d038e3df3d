#include "model/cost/roofline.h"

#include <algorithm>
#include <cmath>

#include "model/cost/gemm_time.h"

namespace spillway {
namespace {

using Candidate = BoundTime;

Candidate longer(Candidate a, Candidate b) { return b.time > a.time ? b : a; }

FlopsPerSecond vector_peak(const Device& device) {
  const auto* f32 = find_figure(device.vector_peak, "f32");
  check(f32 != nullptr, "a profile has no vector peak for f32");
  return f32->value;
}

FlopsPerSecond matrix_peak(const Device& device, std::string_view type) {
  if (const auto* own = find_figure(device.matrix_peak, type)) return own->value;
  const auto* bf16 = find_figure(device.matrix_peak, "bf16");
  return type == "f32" || bf16 == nullptr ? vector_peak(device) : bf16->value;
}

bool is_product(KernelClass kernel) {
  return kernel == KernelClass::kGemm || kernel == KernelClass::kAttentionForward ||
         kernel == KernelClass::kAttentionBackward;
}

/// What tensor cores take for a matrix product: power limits it under lasting load.
Seconds product_time(const Work& work, const HardwareProfile& profile) {
  const std::string_view type = work.ops.matrix_type;
  return work.ops.dot_flops / matrix_peak(profile.device, type) * gemm_power(profile.kernels, type);
}

Candidate device_roofline(const Work& work, const HardwareProfile& profile) {
  const Device& device = profile.device;
  Candidate time{Seconds(0), Bound::kLaunch};
  const Flops matrix = work.ops.dot_flops + work.ops.attention_flops;
  if (work.kernel == KernelClass::kGemm)
    time = longer(time, {product_time(work, profile), Bound::kCompute});
  else if (matrix > Flops(0))
    time = longer(time, {matrix / matrix_peak(device, work.ops.matrix_type), Bound::kCompute});
  time = longer(time, {work.ops.vector_flops / vector_peak(device), Bound::kCompute});
  const Bytes bytes = work.traffic.hbm_read + work.traffic.hbm_written;
  return longer(time, {bytes / device.hbm_bandwidth.value, Bound::kMemory});
}

double factor_of(const Work& work, const KernelCosts& kernels) {
  const auto factor = [&]() -> const Figure<Factor>& {
    switch (work.kernel) {
      case KernelClass::kGemm:
        return gemm_factor(kernels, work.ops.matrix_type);
      case KernelClass::kAttentionForward:
        return kernels.attention_forward;
      case KernelClass::kAttentionBackward:
        return kernels.attention_backward;
      case KernelClass::kRowReduce:
        return kernels.row_reduce;
      case KernelClass::kColumnReduce:
        return kernels.column_reduce;
      case KernelClass::kTranspose:
        return kernels.transpose;
      case KernelClass::kCopy:
      case KernelClass::kSliceCopy:
        return kernels.copy;
      default:
        return kernels.elementwise;
    }
  };
  return factor().value.value();
}

/// A matrix product whose type has a gemm_shape. What is fused to it may outlast it.
Candidate shaped_product(const Work& work, const GemmShape& shape, const HardwareProfile& profile) {
  const Candidate time = gemm_time(work, product_time(work, profile), shape, profile);
  const Seconds vector = work.ops.vector_flops / vector_peak(profile.device);
  return longer(time, {vector * factor_of(work, profile.kernels), Bound::kCompute});
}

/// What arithmetic and memory take together: each hides behind the other, but the less so the
/// closer they are. (a^4 + b^4)^(1/4), written so that it is the same on every machine.
Seconds overlapped(Seconds a, Seconds b) {
  const double longer = std::max(a, b).value();
  if (longer <= 0) return Seconds(0);
  const double r = std::min(a, b).value() / longer;
  return Seconds(longer * std::sqrt(std::sqrt(1 + r * r * r * r)));
}

/// Everything that is no matrix product and no attention.
Candidate element_kernel_time(const Work& work, const HardwareProfile& profile) {
  const KernelCosts& kernels = profile.kernels;
  const Bytes bytes = work.traffic.hbm_read + work.traffic.hbm_written;
  const Seconds memory = bytes / profile.device.hbm_bandwidth.value * factor_of(work, kernels);
  const Seconds arithmetic =
      work.element_ops / vector_peak(profile.device) * kernels.vector.value.value();
  const Seconds body = overlapped(memory, arithmetic);
  const Seconds launch = kernels.launch_floor.value * work.launches;
  const Bound bound = memory >= arithmetic ? Bound::kMemory : Bound::kCompute;
  return {launch + body, launch >= body ? Bound::kLaunch : bound};
}

Candidate kernel_time(const Work& work, const HardwareProfile& profile) {
  if (!is_product(work.kernel)) return element_kernel_time(work, profile);
  if (work.kernel == KernelClass::kGemm) {
    const GemmShape* shape = find_gemm_shape(profile.kernels, work.ops.matrix_type);
    if (shape != nullptr) return shaped_product(work, *shape, profile);
  }
  Candidate time = device_roofline(work, profile);
  time.time = time.time * factor_of(work, profile.kernels);
  const bool is_gemm = work.kernel == KernelClass::kGemm;
  const Seconds overhead = is_gemm ? profile.kernels.gemm_overhead.value : Seconds(0);
  if (overhead > time.time) time.bound = Bound::kLaunch;
  time.time += overhead;
  return longer(time, {profile.kernels.launch_floor.value * work.launches, Bound::kLaunch});
}

Candidate link_time(const Work& work, const HostLink& link) {
  const Seconds time = std::max(work.traffic.host_read / link.host_to_device.value,
                                work.traffic.host_written / link.device_to_host.value);
  return {work.is_memcpy ? time + link.copy_latency.value : time, Bound::kHostLink};
}

}  // namespace

std::string_view name_of(Bound bound) {
  constexpr std::string_view kNames[] = {"none",      "compute", "memory",   "launch",
                                         "host link", "network", "measured", "unknown"};
  return kNames[static_cast<std::size_t>(bound)];
}

Cost roofline(const Work& work, const HardwareProfile& profile) {
  if (work.kernel == KernelClass::kFree) return {};
  const bool crosses = work.traffic.host_read + work.traffic.host_written > Bytes(0);
  const bool is_host_copy = crosses && work.is_memcpy;
  Candidate time{};
  if (!is_host_copy) time = kernel_time(work, profile);
  if (crosses) time = longer(time, link_time(work, profile.link));
  return {.time = time.time,
          .bound = work.unknown.empty() ? time.bound : Bound::kUnknown,
          .kernel = work.kernel,
          .uses_sms = !work.is_memcpy,
          .gap = is_host_copy ? Seconds(0) : profile.kernels.gap.value * work.launches,
          .hbm_bytes = work.traffic.hbm_read + work.traffic.hbm_written,
          .host_to_device = work.traffic.host_read,
          .device_to_host = work.traffic.host_written};
}

}  // namespace spillway
