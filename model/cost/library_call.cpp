#include "model/cost/library_call.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/base/json_value.h"
#include "model/cost/matrix_product.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

std::string_view config_of(const Computation& computation, InstructionIndex i) {
  return computation.attribute(i, "backend_config").value_or("");
}

Shape result_of(const Computation& computation, InstructionIndex i) {
  const Shape shape = computation[i].shape;
  return shape.is_tuple() ? shape.element(0) : shape;
}

OpCount count_gemm(const Computation& computation, InstructionIndex i) {
  const std::string_view config = config_of(computation, i);
  const Shape left = operand_shape(computation, i, 0);
  const auto contracting = parse_integers(json_value(config, "lhs_contracting_dimensions"));
  const Flops flops = product_flops(left, result_of(computation, i), contracting);
  const bool full_precision =
      json_value(config, "operand_precision").find("HIGHEST") != std::string_view::npos;
  return {.dot_flops = flops,
          .library_flops = flops,
          .matrix_type = matrix_type(left, operand_shape(computation, i, 1), full_precision),
          .largest_product = flops,
          .depth = depth_of(flops, result_of(computation, i))};
}

OpCount count_cudnn_convolution(const Computation& computation, InstructionIndex i) {
  OpCount count = count_convolution(computation, i, result_of(computation, i));
  count.library_flops = count.dot_flops;
  return count;
}

/// Sizes of one attention call.
struct Attention {
  double heads = 0;  ///< of q, times batch
  double queries = 0, keys = 0;
  double key_size = 0, value_size = 0;  ///< of one head
};

std::optional<double> dimension(Shape shape, std::optional<std::int64_t> d) {
  if (!d || *d < 0 || *d >= static_cast<std::int64_t>(shape.dims().size())) return std::nullopt;
  return static_cast<double>(shape.dims()[static_cast<std::size_t>(*d)]);
}

std::optional<std::int64_t> first_integer(std::string_view list) {
  const auto integers = parse_integers(list);
  return integers.empty() ? std::nullopt : std::optional(integers[0]);
}

/// The dimension of the right operand of a product that is neither batch nor contracted.
std::optional<std::int64_t> free_dimension(std::string_view product, Shape right) {
  auto taken = parse_integers(json_value(product, "rhs_batch_dimensions"));
  const auto contracted = parse_integers(json_value(product, "rhs_contracting_dimensions"));
  taken.insert(taken.end(), contracted.begin(), contracted.end());
  if (product.empty()) return std::nullopt;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(right.dims().size()); ++d)
    if (std::ranges::find(taken, d) == taken.end()) return d;
  return std::nullopt;
}

/// The operands start with q, k, v in both directions; the softmax is [batch, heads, queries,
/// keys].
std::optional<Attention> attention_of(const Computation& computation, InstructionIndex i,
                                      bool backward) {
  const std::string_view config = config_of(computation, i);
  const auto softmax =
      parse_integers(json_value(json_value(config, "intermediate_tensor_shape"), "dimensions"));
  if (softmax.size() != 4 || computation[i].operand_count < 3) return std::nullopt;
  const Shape q = operand_shape(computation, i, 0);
  const Shape k = operand_shape(computation, i, 1);
  const Shape v = operand_shape(computation, i, 2);
  std::optional<double> key_size, value_size;
  if (backward) {
    const auto query_gradient = json_value(config, "bmm1_grad_gemm2_dot_dimension_numbers");
    const auto softmax_gradient = json_value(config, "bmm2_grad_gemm2_dot_dimension_numbers");
    key_size = dimension(k, free_dimension(query_gradient, k));
    value_size =
        dimension(v, first_integer(json_value(softmax_gradient, "rhs_contracting_dimensions")));
  } else {
    const auto scores = json_value(config, "bmm1_dot_dimension_numbers");
    const auto context = json_value(config, "bmm2_dot_dimension_numbers");
    key_size = dimension(q, first_integer(json_value(scores, "lhs_contracting_dimensions")));
    value_size = dimension(v, free_dimension(context, v));
  }
  if (!key_size || !value_size) return std::nullopt;
  return Attention{.heads = static_cast<double>(softmax[0]) * static_cast<double>(softmax[1]),
                   .queries = static_cast<double>(softmax[2]),
                   .keys = static_cast<double>(softmax[3]),
                   .key_size = *key_size,
                   .value_size = *value_size};
}

/// Pairs of a query and a key of one head that the mask lets through.
///   keys     0 1 2 3 4 5
///   query 0  x                 causal: query i sees keys 0 … i
///   query 1  x x               window 3: no key further back than two
///   query 2  x x x
///   query 3  . x x x
double unmasked_pairs(const Attention& attention, std::string_view config) {
  const std::string_view mask = json_value(config, "mask_type");
  const double queries = attention.queries;
  if (mask != "CAUSAL" && mask != "PADDING_CAUSAL") return queries * attention.keys;
  double reach = attention.keys;
  const auto window = first_integer(json_value(config, "sliding_window_length"));
  if (window && *window > 0) reach = std::min(reach, static_cast<double>(*window));
  const double beyond = std::max(queries - reach, 0.0);
  return queries * queries / 2 - beyond * beyond / 2;
}

OpCount count_attention(const Computation& computation, InstructionIndex i, bool backward) {
  const auto attention = attention_of(computation, i, backward);
  if (!attention) return {};
  const double a_pair = backward ? 2 * (3 * attention->key_size + 2 * attention->value_size)
                                 : 2 * (attention->key_size + attention->value_size);
  const double a_head = attention->heads * a_pair;
  const Flops masked(a_head * unmasked_pairs(*attention, config_of(computation, i)));
  return {.attention_flops = masked,
          .unmasked_attention_flops = Flops(a_head * attention->queries * attention->keys),
          .matrix_type = matrix_type(operand_shape(computation, i, 0),
                                     operand_shape(computation, i, 1), false),
          .largest_product = masked};
}

}  // namespace

std::string_view call_target(const Computation& computation, InstructionIndex i) {
  std::string_view target = computation.attribute(i, "custom_call_target").value_or("");
  if (target.starts_with('"')) target = target.substr(1, target.find('"', 1) - 1);
  return target;
}

LibraryKernel library_kernel(const Computation& computation, InstructionIndex i) {
  const std::string_view target = call_target(computation, i);
  const bool has_dimensions =
      !json_value(config_of(computation, i), "lhs_contracting_dimensions").empty();
  if (target == "AllocateBuffer") return LibraryKernel::kNothing;
  const bool is_gemm = target.starts_with("__cublas$gemm") ||
                       target.starts_with("__cublas$lt$matmul") ||
                       target == "__cudnn$blockScaledDot";
  if (is_gemm) return has_dimensions ? LibraryKernel::kGemm : LibraryKernel::kUnknown;
  if (target.starts_with("__cudnn$conv") && computation.attribute(i, "dim_labels"))
    return LibraryKernel::kConvolution;
  if (!target.starts_with("__cudnn$fmha")) return LibraryKernel::kUnknown;
  const bool backward = target.find("Backward") != std::string_view::npos;
  if (!attention_of(computation, i, backward)) return LibraryKernel::kUnknown;
  return backward ? LibraryKernel::kAttentionBackward : LibraryKernel::kAttentionForward;
}

OpCount count_library_call(const Computation& computation, InstructionIndex i) {
  switch (library_kernel(computation, i)) {
    case LibraryKernel::kGemm:
      return count_gemm(computation, i);
    case LibraryKernel::kConvolution:
      return count_cudnn_convolution(computation, i);
    case LibraryKernel::kAttentionForward:
      return count_attention(computation, i, false);
    case LibraryKernel::kAttentionBackward:
      return count_attention(computation, i, true);
    case LibraryKernel::kNothing:
    case LibraryKernel::kUnknown:
      break;
  }
  return {};
}

Bytes workspace_bytes(const Computation& computation, InstructionIndex i) {
  const Shape shape = computation[i].shape;
  if (!shape.is_tuple() || shape.tuple_size() < 2) return Bytes(0);
  if (library_kernel(computation, i) == LibraryKernel::kUnknown) return Bytes(0);
  const Shape last = shape.element(shape.tuple_size() - 1);
  const bool is_scratch = last.is_array() && last.dims().size() == 1 &&
                          (last.type() == ElementType::kS8 || last.type() == ElementType::kU8);
  return is_scratch ? last.bytes() : Bytes(0);
}

}  // namespace spillway
