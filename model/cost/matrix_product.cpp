#include "model/cost/matrix_product.h"

#include <algorithm>
#include <vector>

#include "model/cost/operand_shape.h"
#include "model/cost/window.h"

namespace spillway {
namespace {

OpCount product(Flops flops, std::string_view type, Shape result) {
  return {.dot_flops = flops,
          .matrix_type = type,
          .largest_product = flops,
          .depth = depth_of(flops, result)};
}

std::vector<std::int64_t> integers(const Computation& computation, InstructionIndex i,
                                   std::string_view attribute) {
  return parse_integers(computation.attribute(i, attribute).value_or(""));
}

std::int64_t integer_or(const Computation& computation, InstructionIndex i,
                        std::string_view attribute, std::int64_t otherwise) {
  const auto found = integers(computation, i, attribute);
  return found.empty() ? otherwise : found[0];
}

/// The operand type that an algorithm=dot_bf16_bf16_f32 asks for; empty for none.
std::string_view algorithm_type(const Computation& computation, InstructionIndex i) {
  const std::string_view algorithm = computation.attribute(i, "algorithm").value_or("");
  for (const std::string_view type : {"bf16", "f16", "tf32", "f32", "f64"}) {
    constexpr std::string_view kPrefix = "dot_";
    if (algorithm.starts_with(kPrefix) && algorithm.substr(kPrefix.size()).starts_with(type))
      return type;
  }
  return {};
}

std::string_view type_of(const Computation& computation, InstructionIndex i) {
  if (const auto type = algorithm_type(computation, i); !type.empty()) return type;
  const std::string_view precision = computation.attribute(i, "operand_precision").value_or("");
  return matrix_type(operand_shape(computation, i, 0), operand_shape(computation, i, 1),
                     precision.find("highest") != std::string_view::npos);
}

/// Where the letters b, f and 0, 1, … of one part of dim_labels=b01f_01io->b01f stand.
struct DimensionLabels {
  std::string_view input, kernel, output;
};

DimensionLabels parse_labels(std::string_view text) {
  const std::size_t underscore = text.find('_');
  const std::size_t arrow = text.find("->");
  if (underscore == std::string_view::npos || arrow == std::string_view::npos) return {};
  return {text.substr(0, underscore), text.substr(underscore + 1, arrow - underscore - 1),
          text.substr(arrow + 2)};
}

std::int64_t size_at(Shape shape, std::string_view labels, char label) {
  const std::size_t at = labels.find(label);
  return at < shape.dims().size() ? shape.dims()[at] : 1;
}

/// Pairs of window position and output position that read an element of the input, not padding and
/// not a hole of base dilation.
double valid_positions(const WindowDimension& d, std::int64_t input, std::int64_t kernel,
                       std::int64_t output) {
  std::int64_t valid = 0;
  for (std::int64_t k = 0; k < kernel; ++k) {
    const std::int64_t offset = k * d.window_dilation - d.pad_low;
    if (d.stride == 1 && d.base_dilation == 1) {
      const std::int64_t first = std::max<std::int64_t>(-offset, 0);
      valid += std::max<std::int64_t>(std::min(input - offset, output) - first, 0);
      continue;
    }
    for (std::int64_t o = 0; o < output; ++o) {
      const std::int64_t at = o * d.stride + offset;
      const bool inside = at >= 0 && at % d.base_dilation == 0 && at / d.base_dilation < input;
      valid += inside ? 1 : 0;
    }
  }
  return static_cast<double>(valid);
}

/// Rows of a ragged-dot belong to one group each; only a contraction over the ragged dimension
/// gives every group a result of its own.
double ragged_share(const Computation& computation, InstructionIndex i) {
  if (!integers(computation, i, "rhs_group_dims").empty()) return 1;
  const Shape group_sizes = computation.shape_of(computation.operands(i).back());
  return 1 / static_cast<double>(std::max<std::int64_t>(group_sizes.dims().back(), 1));
}

}  // namespace

double depth_of(Flops flops, Shape result) {
  return flops.value() / (2 * static_cast<double>(std::max<std::int64_t>(result.elements(), 1)));
}

Flops product_flops(Shape left, Shape result, std::span<const std::int64_t> contracting) {
  double flops = 2 * static_cast<double>(result.elements());
  for (const std::int64_t d : contracting)
    if (d >= 0 && d < static_cast<std::int64_t>(left.dims().size()))
      flops *= static_cast<double>(left.dims()[static_cast<std::size_t>(d)]);
  return Flops(flops);
}

std::string_view matrix_type(Shape left, Shape right, bool full_precision) {
  const ElementType type = left.bits() >= right.bits() ? left.type() : right.type();
  if (type != ElementType::kF32) return element_type_name(type);
  return full_precision ? "f32" : "tf32";
}

OpCount count_convolution(const Computation& computation, InstructionIndex i, Shape result) {
  const Shape input = operand_shape(computation, i, 0);
  const Shape kernel = operand_shape(computation, i, 1);
  const auto labels = parse_labels(computation.attribute(i, "dim_labels").value_or(""));
  const auto window = parse_window(computation.attribute(i, "window").value_or(""));
  const std::int64_t features =
      size_at(input, labels.input, 'f') / integer_or(computation, i, "feature_group_count", 1);
  const std::int64_t batch =
      size_at(input, labels.input, 'b') / integer_or(computation, i, "batch_group_count", 1);
  double flops = 2 * static_cast<double>(features) * static_cast<double>(batch) *
                 static_cast<double>(size_at(result, labels.output, 'f'));
  for (std::size_t d = 0; d < window.size(); ++d) {
    const char label = static_cast<char>('0' + d);
    flops *= valid_positions(window[d], size_at(input, labels.input, label),
                             size_at(kernel, labels.kernel, label),
                             size_at(result, labels.output, label));
  }
  return product(Flops(flops), type_of(computation, i), result);
}

OpCount count_matrix_product(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  if (in.opcode == Opcode::kConvolution) return count_convolution(computation, i, in.shape);
  const Shape left = operand_shape(computation, i, 0);
  Flops flops = product_flops(left, in.shape, integers(computation, i, "lhs_contracting_dims"));
  if (in.opcode == Opcode::kRaggedDot) flops = flops * ragged_share(computation, i);
  return product(flops, type_of(computation, i), in.shape);
}

}  // namespace spillway
