#include "model/spec/layer_text.h"

#include <algorithm>

#include "model/base/check.h"

namespace spillway {
namespace {

/// XLA's GPU compiler puts collectives together up to this many bytes of results
/// (xla_gpu_all_gather_combine_threshold_bytes and its like, 30 MiB by default).
constexpr std::int64_t kCombined = 30ll << 20;

std::int64_t bytes_of(const HloArray& array) {
  return element_count(array) * element_bits(array.type) / 8;
}

}  // namespace

LayerText::LayerText(const StepSpec& step, int group, HloBlock& block,
                     const std::vector<StackedWeight>& weights, const HloValue& index,
                     const HloValue& positions, bool backward)
    : step_(step),
      model_(step.model),
      layers_(step.model.groups[static_cast<std::size_t>(group)]),
      block_(block),
      weights_(weights),
      index_(index),
      positions_(positions),
      b_(step.local_batch()),
      s_(step.local_sequence()),
      t_(step.local_tokens()),
      d_(step.model.embed),
      tp_(step.mesh.tensor_shares()),
      type_(step.precision.activations) {
  for (SavedTensor& tensor : list_saved_tensors(step))
    if (tensor.group == group && tensor.is_needed) tensors_.push_back(std::move(tensor));
  const Quantization q = step.precision.quantization;
  if (q == Quantization::kFp8 || q == Quantization::kMxfp8)
    block_.set_product_type(ElementType::kF8E4M3FN);
  if (backward) last_ = layers_.layers / step.mesh[MeshAxis::kStage] - 1;
}

bool LayerText::has_post_norms() const { return model_.norms_per_layer == 4; }

std::string LayerText::feed_forward_norm() const {
  return has_post_norms() ? "pre_ffw_norm" : "post_self_attention_layer_norm";
}

/// Whether features of this size are a share of the model's, so that sums over them need the
/// others.
bool LayerText::is_split(std::int64_t features) const {
  return step_.mesh[MeshAxis::kTensor] > 1 && features * step_.mesh[MeshAxis::kTensor] == d_;
}

/// Dimensions of a value, or of one layer's row of a stack of what was saved.
std::vector<std::int64_t> LayerText::row_dims(const HloValue& part) const {
  std::vector<std::int64_t> dims = part.array.dims;
  if (is_stack(part)) dims.erase(dims.begin());
  return dims;
}

bool LayerText::is_stack(const HloValue& part) const {
  return std::ranges::any_of(stacks_, [&](const auto& s) { return s.second.ref == part.ref; });
}

/// An operand of a fusion: the value, or this layer's row where it is a stack, which XLA reads
/// inside the kernel.
HloValue LayerText::read(HloFusion& fusion, const HloValue& part,
                         const std::vector<std::int64_t>& dims) {
  if (!is_stack(part)) return fusion.view(fusion.in(part), dims);
  return fusion.view(fusion.row(fusion.in(part), fusion.in(index_), last_), dims);
}

/// The sum of several such operands, in the activations' type.
HloValue LayerText::sum_in(HloFusion& fusion, const HloValues& parts,
                           const std::vector<std::int64_t>& dims) {
  HloValue sum = read(fusion, parts.front(), dims);
  for (std::size_t i = 1; i < parts.size(); ++i)
    sum = fusion.binary("add", sum, read(fusion, parts[i], dims));
  return sum;
}

HloValue LayerText::save(const std::string& name, const HloValue& value) {
  saved_[name] = value;
  return value;
}

/// Every weight's row, converted to the activations' type and put together.
void LayerText::load(const std::vector<std::string>& paths) {
  struct Loaded {
    const StackedWeight* weight;
    HloValue value;
  };
  std::vector<Loaded> rows;
  for (const std::string& path : paths) {
    const auto found = std::ranges::find(weights_, path, &StackedWeight::path);
    if (found == weights_.end() || loaded_.contains(path)) continue;
    HloFusion fusion(block_, "loop_convert_fusion");
    const HloValue row =
        fusion.convert(fusion.row(fusion.in(found->stack), fusion.in(index_), last_), type_);
    rows.push_back({&*found, block_.view(fusion.finish(row), found->local)});
  }
  for (std::size_t i = 0; i < rows.size();) {
    if (rows[i].weight->gathers.empty()) {
      loaded_[rows[i].weight->path] = rows[i].value;
      ++i;
      continue;
    }
    const StackedWeight::Gather& first = rows[i].weight->gathers.front();
    HloValues together;
    std::vector<std::size_t> dims;
    std::int64_t bytes = 0;
    std::size_t end = i;
    for (; end < rows.size() && !rows[end].weight->gathers.empty(); ++end) {
      const StackedWeight::Gather& gather = rows[end].weight->gathers.front();
      const std::int64_t more =
          bytes_of(rows[end].value.array) * group_size(step_.mesh, gather.axes);
      if (gather.axes != first.axes || gather.dim != first.dim) break;
      if (end > i && bytes + more > kCombined) break;
      bytes += more;
      together.push_back(rows[end].value);
      dims.push_back(gather.dim);
    }
    const HloValues whole = all_gather(block_, step_.mesh, first.axes, together, dims);
    for (std::size_t k = i; k < end; ++k) {
      HloValue value = whole[k - i];
      const auto& gathers = rows[k].weight->gathers;
      for (std::size_t g = 1; g < gathers.size(); ++g)
        value = all_gather(block_, step_.mesh, gathers[g].axes, {value}, {gathers[g].dim}).front();
      loaded_[rows[k].weight->path] = value;
    }
    i = end;
  }
}

HloValue LayerText::scale(const std::string& path) {
  const std::string full = path + "/scale";
  load({full});
  return loaded_.at(full);
}

/// Sums over features of the squares of a sum of parts, a number a token.
HloValue LayerText::sum_of_squares(const HloValues& parts, const std::vector<std::int64_t>& dims) {
  HloFusion fusion(block_, "input_reduce_fusion", "kInput");
  HloValue x = fusion.convert(sum_in(fusion, parts, dims), ElementType::kF32);
  const auto features = static_cast<std::int64_t>(x.array.dims.size()) - 1;
  return fusion.finish(fusion.reduce(fusion.binary("multiply", x, x), {features}));
}

HloValue LayerText::normalise(const HloValues& parts, const std::string& scale_path) {
  const HloValue factor = scale(scale_path);
  const std::vector<std::int64_t> dims = row_dims(parts.front());
  const auto features = static_cast<std::int64_t>(dims.size()) - 1;
  std::vector<std::int64_t> leading(dims.size() - 1);
  for (std::size_t i = 0; i < leading.size(); ++i) leading[i] = static_cast<std::int64_t>(i);
  const bool split = is_split(dims.back());
  std::optional<HloValue> sum;
  if (split) sum = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, sum_of_squares(parts, dims));
  HloFusion fusion(block_, split ? "loop_multiply_fusion" : "fusion", split ? "kLoop" : "kCustom");
  HloValue x = fusion.convert(sum_in(fusion, parts, dims), ElementType::kF32);
  const HloValue squares =
      sum ? fusion.in(*sum) : fusion.reduce(fusion.binary("multiply", x, x), {features});
  const HloValue root = fusion.unary("rsqrt", squares);
  HloValue y =
      fusion.convert(fusion.binary("multiply", x, fusion.broadcast(root, dims, leading)), type_);
  y = fusion.binary("multiply", y, fusion.broadcast(fusion.in(factor), dims, {features}));
  return fusion.finish(y);
}

/// The gradient through a norm, what is added to it, and the normalised value again, which the
/// gradients of the weights behind it read. XLA makes all of it in one kernel behind two sums.
HloValue LayerText::norm_backward(const HloValues& parts, const HloValue& gradient,
                                  const std::string& scale_path, const HloValues& added,
                                  HloValue* normed) {
  const HloValue factor = scale(scale_path);
  const std::vector<std::int64_t> dims = gradient.array.dims;
  const auto features = static_cast<std::int64_t>(dims.size()) - 1;
  std::vector<std::int64_t> leading(dims.size() - 1);
  for (std::size_t i = 0; i < leading.size(); ++i) leading[i] = static_cast<std::int64_t>(i);
  const auto input = [&](HloFusion& fusion) {
    return fusion.convert(sum_in(fusion, parts, dims), ElementType::kF32);
  };
  HloFusion sums(block_, "input_reduce_fusion", "kInput");
  const HloValue x = input(sums);
  const HloValue g = sums.binary(
      "multiply", sums.convert(sums.in(gradient), ElementType::kF32),
      sums.broadcast(sums.convert(sums.in(factor), ElementType::kF32), dims, {features}));
  const HloValues totals = sums.finish({sums.reduce(sums.binary("multiply", x, x), {features}),
                                        sums.reduce(sums.binary("multiply", x, g), {features})});
  HloValue squares = totals[0], products = totals[1];
  if (is_split(dims.back())) {
    squares = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, squares);
    products = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, products);
  }
  HloFusion fusion(block_, "input_add_multiply_reduce_fusion", "kInput");
  const HloValue y = input(fusion);
  const HloValue root = fusion.broadcast(fusion.unary("rsqrt", fusion.in(squares)), dims, leading);
  const HloValue dy = fusion.convert(fusion.in(gradient), ElementType::kF32);
  const HloValue by_factor =
      fusion.broadcast(fusion.convert(fusion.in(factor), ElementType::kF32), dims, {features});
  const HloValue back = fusion.binary(
      "subtract", fusion.binary("multiply", fusion.binary("multiply", dy, by_factor), root),
      fusion.binary("multiply", y, fusion.broadcast(fusion.in(products), dims, leading)));
  HloValue dx = fusion.convert(back, type_);
  for (const HloValue& other : added)
    dx = fusion.binary("add", dx, fusion.view(fusion.in(other), dims));
  const HloValue unit = fusion.binary("multiply", y, root);
  // The scale's gradient is summed in two steps: 128 pieces first.
  const std::int64_t tokens = element_count({type_, dims}) / dims.back();
  const std::int64_t pieces = tokens % 128 == 0 ? 128 : 1;
  const HloValue partial = fusion.reduce(
      fusion.view(fusion.binary("multiply", unit, dy), {pieces, tokens / pieces, dims.back()}),
      {1});
  HloValues results = {partial, dx};
  if (normed)
    results.push_back(fusion.binary("multiply", fusion.convert(unit, type_),
                                    fusion.broadcast(fusion.in(factor), dims, {features})));
  const HloValues made = fusion.finish(results);
  if (normed) *normed = made[2];
  HloFusion total(block_, "input_reduce_fusion", "kInput");
  set_gradient(scale_path + "/scale",
               total.finish(total.convert(total.reduce(total.in(made[0]), {0}), type_)));
  return made[1];
}

HloValue LayerText::gather_features(const HloValue& value) {
  if (step_.mesh[MeshAxis::kTensor] == 1) return value;
  return all_gather(block_, step_.mesh, {MeshAxis::kTensor}, {value}, {value.array.dims.size() - 1})
      .front();
}

HloValue LayerText::scatter_features(const HloValue& value) {
  if (step_.mesh[MeshAxis::kTensor] == 1) return value;
  return reduce_scatter(block_, step_.mesh, {MeshAxis::kTensor}, {shaped(value)}, {2}).front();
}

/// A layer's slice of what was saved, as an asynchronous kernel like XLA's.
HloValue LayerText::saved_row(const std::string& name) {
  HloFusion fusion(block_, "loop_dynamic_slice_fusion");
  const HloValue row = fusion.row(fusion.in(stack(name)), fusion.in(index_), last_);
  const HloValue value = fusion.finish_async(row);
  std::vector<std::int64_t> dims(value.array.dims.begin() + 1, value.array.dims.end());
  return block_.view(value, std::move(dims));
}

/// input^T gradient over all tokens.
HloValue LayerText::weight_gradient(const HloValue& input, const HloValue& gradient) {
  return product(block_, flat(input), flat(gradient), {.a_dim = 0, .b_dim = 0});
}

/// What devices computed for their own tokens is summed and shared out; few bytes in one
/// collective.
void LayerText::finish_gradients() {
  struct Waiting {
    const StackedWeight* weight;
    HloValue value;
  };
  std::vector<Waiting> waiting, replicated;
  std::vector<MeshAxis> batch_axes;
  for (const MeshAxis axis : {MeshAxis::kData, MeshAxis::kFsdp, MeshAxis::kFsdpTranspose,
                              MeshAxis::kContext, MeshAxis::kExpert})
    if (step_.mesh[axis] > 1) batch_axes.push_back(axis);
  for (const StackedWeight& weight : weights_) {
    const auto found = gradients_.find(weight.path);
    if (found == gradients_.end()) continue;
    const HloValue value = block_.view(found->second, weight.whole(step_.mesh));
    (weight.gathers.empty() ? replicated : waiting).push_back({&weight, value});
  }
  if (!replicated.empty() && !batch_axes.empty()) {
    std::int64_t elements = 0;
    HloFusion joined(block_, "wrapped_concatenate");
    HloValues parts;
    for (const Waiting& one : replicated) {
      parts.push_back(joined.view(joined.in(one.value), {element_count(one.value.array)}));
      elements += element_count(one.value.array);
    }
    HloValue all = replicated.size() == 1 ? block_.view(replicated.front().value, {elements})
                                          : joined.finish(joined.concatenate(parts, 0));
    all = all_reduce(block_, step_.mesh, batch_axes, all);
    std::int64_t from = 0;
    for (const Waiting& one : replicated) {
      const std::int64_t size = element_count(one.value.array);
      HloFusion piece(block_, "wrapped_slice");
      const HloValue value =
          size == elements ? all : piece.finish(piece.slice(piece.in(all), 0, from, from + size));
      gradients_[one.weight->path] = block_.view(value, one.weight->local);
      from += size;
    }
  }
  for (std::size_t i = 0; i < waiting.size();) {
    HloValues together;
    std::vector<std::size_t> dims;
    const StackedWeight::Gather& first = waiting[i].weight->gathers.front();
    std::int64_t bytes = 0;
    std::size_t end = i;
    for (; end < waiting.size(); ++end) {
      const StackedWeight& weight = *waiting[end].weight;
      // A second split comes behind its own collective.
      HloValue value = waiting[end].value;
      for (std::size_t g = weight.gathers.size(); g-- > 1;)
        value = reduce_scatter(block_, step_.mesh, weight.gathers[g].axes, {value},
                               {weight.gathers[g].dim})
                    .front();
      const StackedWeight::Gather& gather = weight.gathers.front();
      const std::int64_t more = bytes_of(value.array) / group_size(step_.mesh, gather.axes);
      if (gather.axes != first.axes) break;
      if (end > i && bytes + more > kCombined) break;
      bytes += more;
      together.push_back(value);
      dims.push_back(gather.dim);
    }
    const HloValues shares = reduce_scatter(block_, step_.mesh, first.axes, together, dims);
    for (std::size_t k = i; k < end; ++k) gradients_[waiting[k].weight->path] = shares[k - i];
    i = end;
  }
  if (step_.mesh[MeshAxis::kData] > 1)
    for (const Waiting& one : waiting) {
      HloValue& value = gradients_[one.weight->path];
      value = all_reduce(block_, step_.mesh, {MeshAxis::kData}, value);
    }
}

LayerText::Forward LayerText::forward(const HloValue& input) {
  save("decoder_layer_input", input);
  const HloValue normed = gather_features(normalise({input}, "pre_self_attention_layer_norm"));
  const HloValue attended = attend(normed);
  HloValues sum = {input, attended};
  if (has_post_norms()) sum[1] = normalise({attended}, "post_self_attention_layer_norm");
  const HloValue again = gather_features(normalise(sum, feed_forward_norm()));
  Forward result;
  quantise_feed_forward(true);
  result.output = layers_.moe ? experts(again, sum) : mlp(again, "mlp", sum);
  quantise_feed_forward(false);
  for (const SavedTensor& tensor : tensors_) result.saved.push_back(saved_.at(tensor.names.back()));
  return result;
}

LayerText::Backward LayerText::backward(const HloValue& output_gradient, const HloValues& stacks) {
  for (std::size_t k = 0; k < tensors_.size(); ++k) stacks_[tensors_[k].names.back()] = stacks[k];
  HloValue gradient = output_gradient;
  if (has_post_norms())
    gradient = norm_backward({stack("mlpwo")}, output_gradient, "post_ffw_norm", {}, nullptr);
  HloValue normed;
  HloValue middle;  // the gradient between attention and feed-forward
  HloValues sum = {stack("decoder_layer_input"), stack("out_proj")};
  if (has_post_norms()) {
    sum[1] = normalise({stack("out_proj")}, "post_self_attention_layer_norm");
  } else {
    HloFusion add(block_, "loop_add_fusion");
    const std::vector<std::int64_t> dims = row_dims(sum[0]);
    sum = {add.finish(add.binary("add", read(add, sum[0], dims), read(add, sum[1], dims)))};
  }
  quantise_feed_forward(true);
  if (layers_.moe) {
    // The router runs again, and reads what goes into it.
    normed = gather_features(normalise(sum, feed_forward_norm()));
    const HloValue back = experts_backward(gradient, normed);
    middle = norm_backward(sum, scatter_features(shaped(back)), feed_forward_norm(),
                           {output_gradient}, nullptr);
  } else {
    const HloValue back = mlp_backward(gather_features(gradient), "mlp", {});
    HloValue local;
    middle = norm_backward(sum, scatter_features(shaped(back)), feed_forward_norm(),
                           {output_gradient}, &local);
    normed = gather_features(local);
  }
  quantise_feed_forward(false);
  HloValue attended = middle;
  if (has_post_norms())
    attended =
        norm_backward({stack("out_proj")}, middle, "post_self_attention_layer_norm", {}, nullptr);
  Backward result;
  result.input_gradient = attend_backward(gather_features(attended), middle);
  quantise_feed_forward(true);
  if (!layers_.moe) mlp_weight_gradients(normed, gather_features(gradient), "mlp");
  quantise_feed_forward(false);
  finish_gradients();
  result.gradients = std::move(gradients_);
  return result;
}

}  // namespace spillway
