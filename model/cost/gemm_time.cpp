#include "model/cost/gemm_time.h"

#include <algorithm>
#include <cmath>

namespace spillway {
namespace {

constexpr double kDepthUnit = 1024;  // elements that GemmShape::depth stands for

/// All of what fits L2 is there; of what does not, less and less, for the rest drives it out.
///   bytes   0   L2   2 L2   3 L2
///   near    0   L2   L2/2   0
Bytes held_by_l2(Bytes bytes, Bytes l2) {
  return std::clamp((l2 * 3 - bytes) / 2, Bytes(0), bytes);
}

Seconds moving_time(Bytes bytes, const GemmShape& shape, const HardwareProfile& profile) {
  const Bytes near = held_by_l2(bytes, profile.device.l2_capacity.value);
  const BytesPerSecond hbm = profile.device.hbm_bandwidth.value;
  return near / hbm * shape.operands.value() +
         (bytes - near) / hbm * profile.kernels.elementwise.value.value();
}

}  // namespace

double gemm_power(const KernelCosts& kernels, std::string_view xla_type) {
  const auto* power = find_figure(kernels.gemm_power, xla_type);
  return power == nullptr ? 1.0 : power->value.value();
}

const GemmShape* find_gemm_shape(const KernelCosts& kernels, std::string_view xla_type) {
  const GemmShape* own = find_figure(kernels.gemm_shape, xla_type);
  return own != nullptr ? own : find_figure(kernels.gemm_shape, "bf16");
}

BoundTime gemm_time(const Work& work, Seconds arithmetic, const GemmShape& shape,
                    const HardwareProfile& profile) {
  const Seconds compute =
      arithmetic * gemm_factor(profile.kernels, work.ops.matrix_type).value.value();
  const Seconds writing =
      work.traffic.hbm_written / profile.device.hbm_bandwidth.value * shape.result.value();
  const Seconds walk = shape.depth * (work.ops.depth / kDepthUnit);
  const Seconds moving =
      moving_time(work.traffic.hbm_read + work.traffic.hbm_written, shape, profile);

  const Seconds busy = compute + writing;
  BoundTime result{
      .time = shape.overhead + Seconds(std::hypot(busy.value(), walk.value(), moving.value())),
      .bound = Bound::kLaunch};
  Seconds longest = std::max(shape.overhead, walk);
  if (std::max(writing, moving) > longest) {
    longest = std::max(writing, moving);
    result.bound = Bound::kMemory;
  }
  if (compute > longest) result.bound = Bound::kCompute;
  return result;
}

}  // namespace spillway
