#include "model/spec/hlo_kernels.h"

#include "model/base/check.h"

namespace spillway {
namespace {

std::string join(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i ? "," : "") + std::to_string(numbers[i]);
  return text;
}

std::string braces(const std::vector<std::int64_t>& numbers) { return "{" + join(numbers) + "}"; }

std::vector<std::int64_t> count_to(std::size_t n) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < n; ++i) numbers.push_back(static_cast<std::int64_t>(i));
  return numbers;
}

std::string zero_of(ElementType) { return "0"; }

}  // namespace

HloFusion::HloFusion(HloBlock& block, std::string base, std::string kind)
    : outer_(block),
      inner_(block.module(), block.module().unique("fused_" + base), ""),
      base_(std::move(base)),
      kind_(std::move(kind)) {}

HloValue HloFusion::in(const HloValue& operand) {
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].ref == operand.ref) return parameters_[i];
  operands_.push_back(operand);
  parameters_.push_back(inner_.parameter(static_cast<int>(operands_.size()) - 1, operand.array));
  return parameters_.back();
}

HloValue HloFusion::scalar(ElementType type, std::string_view literal) {
  return inner_.constant({type, {}}, literal);
}

HloValue HloFusion::unary(std::string_view operation, const HloValue& a) {
  return inner_.add(operation, a.array, std::string(operation) + "(" + a.ref + ")");
}

HloValue HloFusion::binary(std::string_view operation, const HloValue& a, const HloValue& b) {
  check(a.array.dims == b.array.dims, "an element operation has operands of different shapes");
  return inner_.add(operation, a.array, std::string(operation) + "(" + a.ref + ", " + b.ref + ")");
}

HloValue HloFusion::convert(const HloValue& a, ElementType type) {
  if (a.array.type == type) return a;
  return inner_.add("convert", {type, a.array.dims}, "convert(" + a.ref + ")");
}

HloValue HloFusion::view(const HloValue& a, std::vector<std::int64_t> dims) {
  return inner_.view(a, std::move(dims));
}

HloValue HloFusion::broadcast(const HloValue& a, const std::vector<std::int64_t>& to,
                              const std::vector<std::int64_t>& dims) {
  if (a.array.dims == to) return a;
  return inner_.add("broadcast", {a.array.type, to},
                    "broadcast(" + a.ref + "), dimensions=" + braces(dims));
}

HloValue HloFusion::transpose(const HloValue& a, const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> dims;
  for (const std::int64_t p : permutation)
    dims.push_back(a.array.dims[static_cast<std::size_t>(p)]);
  return inner_.add("transpose", {a.array.type, dims},
                    "transpose(" + a.ref + "), dimensions=" + braces(permutation));
}

HloValue HloFusion::slice(const HloValue& a, std::size_t dim, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> dims = a.array.dims;
  std::string ranges;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t low = i == dim ? from : 0, high = i == dim ? to : dims[i];
    ranges += (i ? ", [" : "[") + std::to_string(low) + ":" + std::to_string(high) + "]";
  }
  dims[dim] = to - from;
  return inner_.add("slice", {a.array.type, dims}, "slice(" + a.ref + "), slice={" + ranges + "}");
}

HloValue HloFusion::concatenate(const HloValues& parts, std::size_t dim) {
  HloArray array = parts.front().array;
  array.dims[dim] = 0;
  for (const HloValue& part : parts) array.dims[dim] += part.array.dims[dim];
  return inner_.add(
      "concatenate", array,
      "concatenate(" + join_refs(parts) + "), dimensions={" + std::to_string(dim) + "}");
}

HloValue HloFusion::reduce(const HloValue& a, const std::vector<std::int64_t>& dims,
                           std::string_view operation) {
  HloArray array{a.array.type, {}};
  for (std::size_t i = 0; i < a.array.dims.size(); ++i) {
    bool gone = false;
    for (const std::int64_t dim : dims) gone |= dim == static_cast<std::int64_t>(i);
    if (!gone) array.dims.push_back(a.array.dims[i]);
  }
  const HloValue start = scalar(a.array.type, zero_of(a.array.type));
  return inner_.add("reduce", array,
                    "reduce(" + a.ref + ", " + start.ref + "), dimensions=" + braces(dims) +
                        ", to_apply=%" + outer_.module().reducer(operation, a.array.type));
}

HloValue HloFusion::rows(const HloValue& a, const HloValue& indices) {
  const std::int64_t width = a.array.dims[1];
  return inner_.add("gather", {a.array.type, {indices.array.dims[0], width}},
                    "gather(" + a.ref + ", " + indices.ref +
                        "), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                        "index_vector_dim=1, slice_sizes={1," +
                        std::to_string(width) + "}");
}

HloValue HloFusion::sum_rows(const HloValue& a, const HloValue& indices, std::int64_t count) {
  const std::vector<std::int64_t> dims = {count, a.array.dims[1]};
  const HloValue zeros = broadcast(scalar(a.array.type, zero_of(a.array.type)), dims, {});
  return inner_.add("scatter", {a.array.type, dims},
                    "scatter(" + zeros.ref + ", " + indices.ref + ", " + a.ref +
                        "), update_window_dims={1}, inserted_window_dims={0}, "
                        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%" +
                        outer_.module().reducer("add", a.array.type));
}

HloValue HloFusion::iota(ElementType type, const std::vector<std::int64_t>& dims, std::size_t dim) {
  return inner_.add("iota", {type, dims}, "iota(), iota_dimension=" + std::to_string(dim));
}

HloValue HloFusion::select_equal(const HloValue& a, const HloValue& b) {
  return inner_.add("compare", {ElementType::kPred, a.array.dims},
                    "compare(" + a.ref + ", " + b.ref + "), direction=EQ");
}

HloValue HloFusion::row(const HloValue& stack, const HloValue& index,
                        std::optional<std::int64_t> last) {
  HloValue at = index;
  if (last) at = binary("subtract", scalar(ElementType::kS32, std::to_string(*last)), index);
  const HloValue zero = scalar(ElementType::kS32, "0");
  HloArray array = stack.array;
  array.dims.front() = 1;
  std::string text = "dynamic-slice(" + stack.ref + ", " + at.ref;
  for (std::size_t i = 1; i < array.dims.size(); ++i) text += ", " + zero.ref;
  return inner_.add("dynamic-slice", array, text + "), dynamic_slice_sizes=" + braces(array.dims));
}

HloValue HloFusion::set_row(const HloValue& stack, const HloValue& value, const HloValue& index,
                            std::optional<std::int64_t> last) {
  std::vector<std::int64_t> dims = stack.array.dims;
  dims.front() = 1;
  const HloValue update = view(convert(value, stack.array.type), dims);
  HloValue at = index;
  if (last) at = binary("subtract", scalar(ElementType::kS32, std::to_string(*last)), index);
  const HloValue zero = scalar(ElementType::kS32, "0");
  std::string text = "dynamic-update-slice(" + stack.ref + ", " + update.ref + ", " + at.ref;
  for (std::size_t i = 1; i < dims.size(); ++i) text += ", " + zero.ref;
  return inner_.add("dynamic-update-slice", stack.array, text + ")");
}

HloValue HloFusion::dot(const HloValue& a, const HloValue& b, std::size_t a_dim, std::size_t b_dim,
                        std::size_t batch, std::optional<ElementType> type) {
  check(a.array.dims[a_dim] == b.array.dims[b_dim], "a product contracts different sizes");
  HloArray array{type.value_or(a.array.type), {}};
  for (std::size_t i = 0; i < a.array.dims.size(); ++i)
    if (i != a_dim) array.dims.push_back(a.array.dims[i]);
  for (std::size_t i = batch; i < b.array.dims.size(); ++i)
    if (i != b_dim) array.dims.push_back(b.array.dims[i]);
  std::string text = "dot(" + a.ref + ", " + b.ref + ")";
  if (batch > 0)
    text += ", lhs_batch_dims=" + braces(count_to(batch)) +
            ", rhs_batch_dims=" + braces(count_to(batch));
  text += ", lhs_contracting_dims={" + std::to_string(a_dim) + "}, rhs_contracting_dims={" +
          std::to_string(b_dim) + "}";
  return inner_.add("dot", array, text);
}

HloValue HloFusion::finish(const HloValue& result) {
  inner_.finish({result}, false);
  return outer_.add(
      base_, result.array,
      "fusion(" + join_refs(operands_) + "), kind=" + kind_ + ", calls=%" + inner_.name());
}

HloValues HloFusion::finish(const HloValues& results) {
  if (results.size() == 1) return {finish(results.front())};
  inner_.finish(results, true);
  std::vector<HloArray> arrays;
  for (const HloValue& result : results) arrays.push_back(result.array);
  return outer_.add_tuple(
      base_, arrays,
      "fusion(" + join_refs(operands_) + "), kind=" + kind_ + ", calls=%" + inner_.name());
}

HloValue HloFusion::finish_async(const HloValue& result) {
  inner_.finish({result}, false);
  HloText& module = outer_.module();
  HloBlock wrapped(module, module.unique("async_computation"), "");
  HloValues parameters;
  std::string shapes;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    parameters.push_back(wrapped.parameter(static_cast<int>(i), operands_[i].array));
    shapes += (i ? ", " : "") + to_text(operands_[i].array);
  }
  const HloValue inside = wrapped.add(
      base_, result.array,
      "fusion(" + join_refs(parameters) + "), kind=" + kind_ + ", calls=%" + inner_.name());
  wrapped.finish({inside}, false);
  const std::string start =
      outer_.start("fusion-start", "((" + shapes + "), " + to_text(result.array) + ", u32[])",
                   "async-start(" + join_refs(operands_) + "), calls=%" + wrapped.name());
  return outer_.add("fusion-done", result.array, "async-done(" + start + ")");
}

HloValue product(HloBlock& block, const HloValue& a, const HloValue& b,
                 const ProductOptions& options) {
  HloFusion fusion(block, "gemm_fusion_dot", "kCustom");
  HloValue left = fusion.in(a), right = fusion.in(b);
  const ElementType result_type = left.array.type;
  if (block.product_type()) {
    left = fusion.convert(left, *block.product_type());
    right = fusion.convert(right, *block.product_type());
  }
  HloValue result =
      fusion.dot(left, right, options.a_dim, options.b_dim, options.batch, result_type);
  for (const HloValue& added : options.added)
    result = fusion.binary("add", result, fusion.view(fusion.in(added), result.array.dims));
  return fusion.finish(result);
}

std::string replica_groups(const Mesh& mesh, const std::vector<MeshAxis>& axes) {
  // MaxText has experts last in its mesh.
  static constexpr MeshAxis kOrder[] = {
      MeshAxis::kData,    MeshAxis::kStage,  MeshAxis::kFsdp,           MeshAxis::kFsdpTranspose,
      MeshAxis::kContext, MeshAxis::kTensor, MeshAxis::kTensorSequence, MeshAxis::kExpert};
  std::string all, some;
  for (const MeshAxis axis : kOrder) {
    if (mesh[axis] == 1) continue;
    const std::string name = "'" + std::string(name_of(axis)) + "'";
    all += (all.empty() ? "" : ",") + name + "=" + std::to_string(mesh[axis]);
    for (const MeshAxis wanted : axes)
      if (wanted == axis) some += (some.empty() ? "" : ",") + name;
  }
  return "mesh[" + all + "] {" + some + "}";
}

std::int64_t group_size(const Mesh& mesh, const std::vector<MeshAxis>& axes) {
  std::int64_t size = 1;
  for (const MeshAxis axis : axes) size *= mesh[axis];
  return size;
}

namespace {

HloValues scale_collective(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                           const HloValues& values, const std::vector<std::size_t>& dims,
                           const std::string& opcode, bool grows) {
  const std::int64_t size = group_size(mesh, axes);
  if (size == 1) return values;
  // Pieces of one collective lie along the same dimension: others are views of it.
  HloValues flat, results;
  std::vector<HloArray> arrays;
  std::string reducer;
  for (std::size_t i = 0; i < values.size(); ++i) {
    HloArray array = values[i].array;
    std::int64_t& dim = array.dims[dims[i]];
    if (grows) {
      dim *= size;
    } else {
      check(dim % size == 0, "a collective cannot be shared out");
      dim /= size;
    }
    arrays.push_back(array);
  }
  if (!grows) reducer = ", to_apply=%" + block.module().reducer("add", values.front().array.type);
  const std::string text = opcode + "(" + join_refs(values) +
                           "), channel_id=" + std::to_string(block.module().next_channel()) +
                           ", replica_groups=" + replica_groups(mesh, axes) + ", dimensions={" +
                           std::to_string(dims.front()) + "}, use_global_device_ids=true" + reducer;
  if (values.size() == 1) return {block.add(opcode, arrays.front(), text)};
  return block.add_tuple(opcode, arrays, text);
}

}  // namespace

HloValues all_gather(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                     const HloValues& values, const std::vector<std::size_t>& dims) {
  return scale_collective(block, mesh, axes, values, dims, "all-gather", true);
}

HloValues reduce_scatter(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                         const HloValues& values, const std::vector<std::size_t>& dims) {
  return scale_collective(block, mesh, axes, values, dims, "reduce-scatter", false);
}

HloValue all_reduce(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                    const HloValue& value) {
  if (group_size(mesh, axes) == 1) return value;
  return block.add("all-reduce", value.array,
                   "all-reduce(" + value.ref +
                       "), channel_id=" + std::to_string(block.module().next_channel()) +
                       ", replica_groups=" + replica_groups(mesh, axes) +
                       ", use_global_device_ids=true, to_apply=%" +
                       block.module().reducer("add", value.array.type));
}

HloValue all_to_all(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                    const HloValue& value) {
  if (group_size(mesh, axes) == 1) return value;
  return block.add("all-to-all", value.array,
                   "all-to-all(" + value.ref +
                       "), channel_id=" + std::to_string(block.module().next_channel()) +
                       ", replica_groups=" + replica_groups(mesh, axes) + ", dimensions={0}");
}

HloValues while_loop(HloBlock& block, const std::string& body, const HloValues& carry,
                     std::int64_t trips) {
  HloText& module = block.module();
  std::vector<HloArray> arrays;
  for (const HloValue& value : carry) arrays.push_back(value.array);
  HloBlock condition(module, module.unique("condition"), "");
  const HloValues parameters = condition.tuple_parameter(arrays);
  const HloValue limit = condition.constant({ElementType::kS32, {}}, std::to_string(trips));
  const HloValue less =
      condition.add("compare", {ElementType::kPred, {}},
                    "compare(" + parameters.front().ref + ", " + limit.ref + "), direction=LT");
  condition.finish({less}, false);
  const std::string tuple = block.group(carry);
  return block.add_tuple(
      "while", arrays,
      "while(" + tuple + "), condition=%" + condition.name() + ", body=%" + body +
          ", backend_config={\"known_induction_variable\":{\"tuple_index\":\"0\"},"
          "\"known_init_step\":{\"init\":\"0\",\"step\":\"1\"},\"known_trip_count\":{\"n\":\"" +
          std::to_string(trips) + "\"}}");
}

}  // namespace spillway
