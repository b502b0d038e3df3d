#include "sim/schedule/latency/matmul_belief.h"

#include <algorithm>
#include <cmath>

#include "model/base/json_value.h"
#include "model/cost/gemm_time.h"
#include "model/cost/matrix_product.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

using Dims = std::vector<std::int64_t>;

struct Contraction {
  Dims left_batch, left_contracted, right_contracted, right_batch;
};

/// The product of the dimensions in `dims`, or of all others.
double product_of(Shape shape, const Dims& dims, const Dims& more, bool others) {
  double size = 1;
  for (std::size_t d = 0; d < shape.dims().size(); ++d) {
    const auto at = static_cast<std::int64_t>(d);
    const bool listed =
        std::ranges::find(dims, at) != dims.end() || std::ranges::find(more, at) != more.end();
    if (listed != others) size *= static_cast<double>(shape.dims()[d]);
  }
  return size;
}

MatmulSizes sizes_of(Shape left, Shape right, const Contraction& dims) {
  return {.b = product_of(left, dims.left_batch, {}, false),
          .m = product_of(left, dims.left_batch, dims.left_contracted, true),
          .n = product_of(right, dims.right_batch, dims.right_contracted, true),
          .k = product_of(left, dims.left_contracted, {}, false),
          .type = matrix_type(left, right, false)};
}

Contraction dot_contraction(const Computation& computation, InstructionIndex i) {
  const auto dims = [&](std::string_view name) {
    return parse_integers(computation.attribute(i, name).value_or(""));
  };
  return {dims("lhs_batch_dims"), dims("lhs_contracting_dims"), dims("rhs_contracting_dims"),
          dims("rhs_batch_dims")};
}

Contraction call_contraction(std::string_view config) {
  const auto dims = [&](std::string_view name) { return parse_integers(json_value(config, name)); };
  return {dims("lhs_batch_dimensions"), dims("lhs_contracting_dimensions"),
          dims("rhs_contracting_dimensions"), dims("rhs_batch_dimensions")};
}

std::optional<MatmulSizes> in_fusion(const Program& program, InstructionId fusion) {
  const Computation& fused = program[called_by(program[fusion.computation], fusion.instruction)];
  for (const InstructionIndex i : fused.instructions())
    if (fused[i].opcode == Opcode::kDot)
      return sizes_of(operand_shape(fused, i, 0), operand_shape(fused, i, 1),
                      dot_contraction(fused, i));
  return std::nullopt;
}

/// Bytes of an operand's element.
double operand_bytes_of(std::string_view type) {
  if (type == "tf32" || type == "f32") return 4;
  if (type.starts_with("f4") || type.starts_with("s4")) return 0.5;
  return type.starts_with("f8") || type.starts_with("s8") ? 1 : 2;
}

/// As XLA measured them for its table: results of the type of the operands, of what is narrower
/// than bf16 in bf16, of integers in s32.
Work product(std::string_view type, double b, double m, double n, double k) {
  const double operand_bytes = operand_bytes_of(type);
  const double result_bytes = type.starts_with("s") ? 4 : std::max(operand_bytes, 2.0);
  Work work{.kernel = KernelClass::kGemm};
  work.ops.dot_flops = Flops(2 * b * m * n * k);
  work.ops.matrix_type = type;
  work.ops.depth = k;
  work.traffic.hbm_read = Bytes(std::llround(operand_bytes * b * (m * k + k * n)));
  work.traffic.hbm_written = Bytes(std::llround(result_bytes * b * m * n));
  return work;
}

}  // namespace

std::optional<MatmulSizes> find_matmul(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const InstructionIndex i = id.instruction;
  const auto config = computation.attribute(i, "backend_config").value_or("");
  switch (computation[i].opcode) {
    case Opcode::kDot:
      return sizes_of(operand_shape(computation, i, 0), operand_shape(computation, i, 1),
                      dot_contraction(computation, i));
    case Opcode::kFusion:
      if (config.find("__triton") == std::string_view::npos ||
          config.find("gemm") == std::string_view::npos)
        return std::nullopt;
      return in_fusion(program, id);
    case Opcode::kCustomCall: {
      const auto target = computation.attribute(i, "custom_call_target").value_or("");
      if (target.find("__cublas$lt$matmul") == std::string_view::npos) return std::nullopt;
      return sizes_of(operand_shape(computation, i, 0), operand_shape(computation, i, 1),
                      call_contraction(config));
    }
    default:
      return std::nullopt;
  }
}

double believed_matmul(const MatmulSizes& sizes, const HardwareProfile& profile) {
  static constexpr double kLeast = 256, kMost = 4096, kMostAtOnce = 4;
  const auto limited = [](double size) { return std::clamp(size, kLeast, kMost); };
  const double b = std::clamp(sizes.b, 1.0, kMostAtOnce);
  const double m = limited(sizes.m), n = limited(sizes.n), k = limited(sizes.k);
  const Work inside = product(sizes.type, b, m, n, k);
  const auto* peak = find_figure(profile.device.matrix_peak, sizes.type);
  if (peak == nullptr) peak = find_figure(profile.device.matrix_peak, "bf16");
  check(peak != nullptr, "a profile has no matrix peak for bf16");
  const Seconds arithmetic = inside.ops.dot_flops / peak->value;
  const GemmShape* shape = find_gemm_shape(profile.kernels, sizes.type);
  const Seconds time =
      shape != nullptr ? gemm_time(inside, arithmetic, *shape, profile).time
                       : profile.kernels.gemm_overhead.value +
                             arithmetic * gemm_factor(profile.kernels, sizes.type).value.value();
  constexpr double kMicrosecond = 1e6;
  const double ratio = sizes.b * sizes.m * sizes.n * sizes.k / (b * m * n * k);
  return time.value() * ratio * kMicrosecond;
}

}  // namespace spillway
