#include "sim/capacity/kernel_sum.h"

#include "model/cost/roofline.h"

namespace spillway {
namespace {

constexpr double kActivationBytes = 2;

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

KernelSum one(const Work& work, const HardwareProfile& profile) {
  const Cost cost = roofline(work, profile);
  const Seconds time = cost.time + cost.gap;
  return {time, cost.bound == Bound::kMemory ? time : Seconds(0)};
}

}  // namespace

KernelSum product_kernel(const ProductSize& size, std::string_view type,
                         const HardwareProfile& profile) {
  if (size.rows <= 0) return {};
  const double operand_bytes = type.starts_with("f4")   ? 0.5
                               : type.starts_with("f8") ? 1
                                                        : kActivationBytes;
  Work work;
  work.kernel = KernelClass::kGemm;
  work.ops.dot_flops = work.ops.largest_product = Flops(2 * size.rows * size.depth * size.width);
  work.ops.matrix_type = type;
  work.ops.depth = size.depth;
  work.traffic.hbm_read =
      whole(operand_bytes * (size.rows * size.depth + size.matrices * size.depth * size.width));
  work.traffic.hbm_written = whole(kActivationBytes * size.rows * size.width);
  return one(work, profile);
}

KernelSum attention_kernel(const AttentionSize& size, bool backward,
                           const HardwareProfile& profile) {
  if (size.pairs <= 0) return {};
  // The products that count_library_call counts for cuDNN's calls.
  const double features =
      backward ? 3 * size.head_dim + 2 * size.value_dim : size.head_dim + size.value_dim;
  Work work;
  work.kernel = backward ? KernelClass::kAttentionBackward : KernelClass::kAttentionForward;
  work.ops.attention_flops = Flops(2 * size.pairs * size.heads * features);
  work.ops.matrix_type = "bf16";
  work.traffic.hbm_read = whole(size.bytes);
  return one(work, profile);
}

KernelSum element_kernels(double bytes, int launches, const HardwareProfile& profile) {
  Work work;
  work.kernel = KernelClass::kElementwise;
  work.launches = launches;
  work.traffic.hbm_read = whole(bytes);
  return one(work, profile);
}

}  // namespace spillway
