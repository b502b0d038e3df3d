#include "model/spec/weights.h"

#include <algorithm>

namespace spillway {
namespace {

using Axes = std::vector<WeightAxis>;
using Dims = std::vector<std::int64_t>;

/// Puts the layers where MaxText's param_scan_axis 1 has them: second, and last of one dimension.
void add_layers(WeightArray& array, std::int64_t layers) {
  const auto at = array.dims.empty() ? 0 : 1;
  array.dims.insert(array.dims.begin() + at, layers);
  array.axes.insert(array.axes.begin() + at, WeightAxis::kLayers);
}

/// Collects the arrays of a model.
class Collector {
 public:
  explicit Collector(const StepSpec& step) : step_(step), model_(step.model) {}

  std::vector<WeightArray> collect() {
    add_outside();
    for (std::size_t g = 0; g < model_.groups.size(); ++g) add_group(static_cast<int>(g));
    std::ranges::sort(arrays_, {}, &WeightArray::path);
    return std::move(arrays_);
  }

 private:
  WeightArray& add(std::string path, WeightRole role, Dims dims, Axes axes) {
    WeightArray array;
    array.path = std::move(path);
    array.role = role;
    array.dims = std::move(dims);
    array.axes = std::move(axes);
    array.type = step_.precision.weights;
    array.group = group_;
    if (group_ >= 0) add_layers(array, model_.groups[static_cast<std::size_t>(group_)].layers);
    arrays_.push_back(std::move(array));
    return arrays_.back();
  }

  /// A kernel of a matrix product: its bias, and what a quantiser keeps for it.
  void add_kernel(const std::string& path, WeightRole role, Dims dims, Axes axes, bool bias,
                  std::size_t inputs = 1) {
    if (bias)
      add(path + "/bias", WeightRole::kBias,
          Dims(dims.begin() + static_cast<long>(inputs), dims.end()),
          Axes(axes.begin() + static_cast<long>(inputs), axes.end()));
    if (step_.precision.quantization == Quantization::kFp8 && group_ >= 0) add_fp8(path);
    add(path + "/kernel", role, std::move(dims), std::move(axes));
  }

  /// What delayed scaling keeps of a product's three operands: 1,024 maxima and a scale each.
  void add_fp8(const std::string& path) {
    constexpr std::int64_t kHistory = 1024;
    const std::int64_t layers = model_.groups[static_cast<std::size_t>(group_)].layers;
    for (const char* operand : {"input", "kernel", "output_grad"}) {
      for (const auto& [what, size] :
           {std::pair("amax_history", kHistory), std::pair("scale", std::int64_t{1})}) {
        WeightArray array;
        array.path = path + "/Fp8DirectDotGeneralOp_0/" + operand + "_" + what;
        array.role = WeightRole::kQuantizerState;
        array.group = group_;
        array.dims = {layers, size};
        array.axes = {WeightAxis::kLayers, WeightAxis::kNone};
        array.trained = array.is_parameter = false;
        arrays_.push_back(std::move(array));
      }
    }
  }

  void add_norm(const std::string& path, std::int64_t size, WeightRole role = WeightRole::kNorm,
                WeightAxis axis = WeightAxis::kNorm) {
    if (model_.norm_bias && axis == WeightAxis::kNorm) add(path + "/bias", role, {size}, {axis});
    add(path + "/scale", role, {size}, {axis});
  }

  /// Random keys and counts, one set a stack of layers and one for all else.
  void add_counters(const std::string& path) {
    for (const char* stream : {"aqt", "dropout", "params"}) {
      for (const bool key : {false, true}) {
        WeightArray array;
        array.path = path + "/rngs/" + stream + (key ? "/key" : "/count");
        array.role = WeightRole::kCounter;
        array.group = group_;
        if (group_ >= 0) {
          array.dims.push_back(model_.groups[static_cast<std::size_t>(group_)].layers);
          array.axes.push_back(WeightAxis::kLayers);
        }
        if (key) {
          array.dims.push_back(4);
          array.axes.push_back(WeightAxis::kNone);
        }
        array.type = ElementType::kU32;
        array.trained = array.is_parameter = false;
        arrays_.push_back(std::move(array));
      }
    }
  }

  void add_outside() {
    using enum WeightAxis;
    add("token_embedder/embedding", WeightRole::kEmbedding, {model_.vocabulary, model_.embed},
        {kVocab, kEmbedVocab});
    if (model_.trained_positions > 0)
      add("decoder/position_embedder/embedding", WeightRole::kPositions,
          {model_.trained_positions, model_.embed}, {kNone, kEmbedVocab});
    add_norm("decoder/decoder_norm", model_.embed, WeightRole::kFinalNorm);
    if (!model_.tied_head)
      add_kernel("decoder/logits_dense", WeightRole::kHead, {model_.embed, model_.vocabulary},
                 {kEmbedVocab, kVocab}, false);
    add_counters("decoder");
  }

  void add_group(int group) {
    group_ = group;
    const LayerStack& layers = model_.groups[static_cast<std::size_t>(group)];
    const std::string path = "decoder/" + layers.name;
    static constexpr const char* kNorms[] = {"pre_self_attention_layer_norm",
                                             "post_self_attention_layer_norm", "pre_ffw_norm",
                                             "post_ffw_norm"};
    for (std::int64_t n = 0; n < model_.norms_per_layer; ++n)
      add_norm(path + "/" + kNorms[n], model_.embed);
    if (layers.attention.latent)
      add_latent_attention(path + "/self_attention", layers.attention);
    else
      add_attention(path + "/self_attention", layers.attention);
    if (layers.mlp_width > 0) add_mlp(path + "/mlp", layers.mlp_width);
    if (layers.moe) add_moe(path + "/MoeBlock_0", *layers.moe);
    add_counters(path);
    group_ = -1;
  }

  void add_attention(const std::string& path, const AttentionSpec& a) {
    using enum WeightAxis;
    const std::int64_t embed = model_.embed;
    if (a.fused_projection) {
      add_kernel(path + "/qkv_proj", WeightRole::kFusedQkv, {embed, 3, a.query_heads, a.head_dim},
                 {kEmbed, kNone, kHeads, kNone}, a.qkv_bias);
    } else {
      add_kernel(path + "/query", WeightRole::kQuery, {embed, a.query_heads, a.head_dim},
                 {kEmbed, kHeads, kNone}, a.qkv_bias);
      add_kernel(path + "/key", WeightRole::kKey, {embed, a.kv_heads, a.head_dim},
                 {kEmbed, kHeads, kNone}, a.qkv_bias);
      if (!a.keys_are_values)
        add_kernel(path + "/value", WeightRole::kValue, {embed, a.kv_heads, a.value_dim},
                   {kEmbed, kHeads, kNone}, a.qkv_bias);
    }
    add_kernel(path + "/out", WeightRole::kOut, {a.query_heads, a.value_dim, embed},
               {kHeads, kNone, kEmbed}, a.out_bias, 2);
    if (a.query_key_norm) {
      add_norm(path + "/key_norm", a.norm_over_heads ? a.kv_heads * a.head_dim : a.head_dim,
               WeightRole::kNorm, kNone);
      add_norm(path + "/query_norm", a.norm_over_heads ? a.query_heads * a.head_dim : a.head_dim,
               WeightRole::kNorm, kNone);
    }
    if (a.sinks) add(path + "/sinks", WeightRole::kBias, {a.query_heads}, {kNone});
  }

  void add_latent_attention(const std::string& path, const AttentionSpec& a) {
    using enum WeightAxis;
    const AttentionSpec::Latent& latent = *a.latent;
    const std::int64_t embed = model_.embed;
    if (latent.query_rank > 0) {
      add_kernel(path + "/wq_a", WeightRole::kLatentDown, {embed, latent.query_rank},
                 {kEmbed, kNone}, false);
      add_norm(path + "/q_norm", latent.query_rank, WeightRole::kNorm, kNone);
      add_kernel(path + "/wq_b", WeightRole::kLatentUp,
                 {latent.query_rank, a.query_heads, a.head_dim}, {kLatent, kHeads, kNone}, false);
    } else {
      add_kernel(path + "/query", WeightRole::kQuery, {embed, a.query_heads, a.head_dim},
                 {kEmbed, kHeads, kNone}, false);
    }
    add_kernel(path + "/wkv_a", WeightRole::kLatentDown,
               {embed, latent.kv_rank + latent.position_dim}, {kEmbed, kNone}, false);
    add_norm(path + "/kv_norm", latent.kv_rank, WeightRole::kNorm, kNone);
    add_kernel(path + "/wkv_b", WeightRole::kLatentUp,
               {latent.kv_rank, a.query_heads, latent.content_dim + a.value_dim},
               {kLatent, kHeads, kNone}, false);
    add_kernel(path + "/out", WeightRole::kOut, {a.query_heads, a.value_dim, embed},
               {kHeads, kNone, kEmbed}, false, 2);
  }

  void add_mlp(const std::string& path, std::int64_t width) {
    using enum WeightAxis;
    add_kernel(path + (model_.gated ? "/wi_0" : "/wi"), WeightRole::kMlpIn, {model_.embed, width},
               {kEmbed, kMlp}, model_.mlp_bias);
    if (model_.gated)
      add_kernel(path + "/wi_1", WeightRole::kMlpIn, {model_.embed, width}, {kEmbed, kMlp},
                 model_.mlp_bias);
    add_kernel(path + "/wo", WeightRole::kMlpOut, {width, model_.embed}, {kMlp, kEmbed},
               model_.mlp_bias);
  }

  void add_moe(const std::string& path, const MoeSpec& moe) {
    using enum WeightAxis;
    const std::int64_t embed = model_.embed;
    add(path + "/gate/kernel", WeightRole::kGate, {embed, moe.experts}, {kEmbedMoe, kNone});
    if (moe.gate_bias) {
      WeightArray& bias = add(path + "/gate/bias", WeightRole::kBias, {}, {});
      bias.dims.push_back(moe.experts);
      bias.axes.push_back(kNone);
      bias.trained = moe.gate_bias_is_trained;
    }
    for (const char* input : {"/wi_0", "/wi_1"}) {
      if (!model_.gated && input[4] == '1') continue;
      add(path + input, WeightRole::kExpertIn, {moe.experts, embed, moe.width},
          {kExperts, kEmbedMoe, kMlpMoe});
      if (moe.expert_bias)
        add(path + input + "_bias", WeightRole::kBias, {moe.experts, moe.width},
            {kExperts, kMlpMoe});
    }
    add(path + "/wo", WeightRole::kExpertOut, {moe.experts, moe.width, embed},
        {kExperts, kMlpMoe, kEmbedMoe});
    if (moe.expert_bias)
      add(path + "/wo_bias", WeightRole::kBias, {moe.experts, embed}, {kExperts, kEmbedMoe});
    if (moe.shared > 0)
      add_mlp(path.substr(0, path.rfind('/')) + "/shared_experts", moe.shared_width);
  }

  const StepSpec& step_;
  const ModelSpec& model_;
  int group_ = -1;
  std::vector<WeightArray> arrays_;
};

Bytes bytes_of(std::int64_t elements, ElementType type) {
  return Bytes((elements * element_bits(type) + 7) / 8);
}

/// Rows and columns of Adafactor's factored second moment: sums over the last and the last but one
/// dimension. Factored are arrays with two dimensions of at least 128, as Optax has it.
std::int64_t factored_elements(const std::vector<std::int64_t>& dims, std::int64_t all) {
  constexpr std::int64_t kLeast = 128;
  std::vector<std::int64_t> sizes = dims;
  std::ranges::sort(sizes, std::greater());
  if (sizes.size() < 2 || sizes[1] < kLeast) return all;
  return all / sizes[0] + all / sizes[1];
}

}  // namespace

std::int64_t WeightArray::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

int WeightArray::layer_axis() const {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] == WeightAxis::kLayers) return static_cast<int>(i);
  return -1;
}

std::vector<WeightArray> list_weights(const StepSpec& step) { return Collector(step).collect(); }

std::int64_t count_parameters(const ModelSpec& model) {
  StepSpec step;
  step.model = model;
  std::int64_t sum = 0;
  for (const WeightArray& array : list_weights(step))
    if (array.is_parameter) sum += array.elements();
  return sum;
}

std::int64_t count_active_parameters(const ModelSpec& model) {
  std::int64_t sum = count_parameters(model);
  StepSpec step;
  step.model = model;
  for (const WeightArray& array : list_weights(step)) {
    const bool of_experts = std::ranges::find(array.axes, WeightAxis::kExperts) != array.axes.end();
    if (!of_experts) continue;
    const MoeSpec& moe = *model.groups[static_cast<std::size_t>(array.group)].moe;
    sum -= array.elements() / moe.experts * (moe.experts - moe.per_token);
  }
  return sum;
}

std::int64_t shares_of(WeightAxis axis, const Mesh& mesh) {
  const std::int64_t fsdp = mesh[MeshAxis::kFsdp] * mesh[MeshAxis::kContext];
  switch (axis) {
    case WeightAxis::kNone:
      return 1;
    case WeightAxis::kLayers:
      return mesh[MeshAxis::kStage];
    case WeightAxis::kEmbed:
      return fsdp * mesh[MeshAxis::kExpert];
    case WeightAxis::kEmbedMoe:
      return fsdp;
    case WeightAxis::kEmbedVocab:
      return fsdp * mesh[MeshAxis::kFsdpTranspose] * mesh[MeshAxis::kExpert];
    case WeightAxis::kVocab:
    case WeightAxis::kHeads:
      return mesh.tensor_shares();
    case WeightAxis::kMlp:
    case WeightAxis::kMlpMoe:
      return mesh[MeshAxis::kFsdpTranspose] * mesh.tensor_shares();
    case WeightAxis::kExperts:
      return mesh[MeshAxis::kExpert];
    case WeightAxis::kLatent:
      return fsdp * mesh[MeshAxis::kExpert];
    case WeightAxis::kNorm:
      return mesh[MeshAxis::kTensor];
  }
  return 1;
}

Result<std::vector<std::int64_t>> local_dims(const WeightArray& array, const Mesh& mesh) {
  using enum WeightAxis;
  std::vector<std::int64_t> local = array.dims;
  // An axis of the mesh is used once an array: fsdp_transpose by the hidden dimension where there
  // is one.
  const bool hidden = std::ranges::any_of(
      array.axes, [](WeightAxis axis) { return axis == kMlp || axis == kMlpMoe; });
  for (std::size_t i = 0; i < local.size(); ++i) {
    std::int64_t shares = shares_of(array.axes[i], mesh);
    if (!hidden &&
        (array.axes[i] == kEmbed || array.axes[i] == kEmbedMoe || array.axes[i] == kLatent))
      shares *= mesh[MeshAxis::kFsdpTranspose];
    if (local[i] % shares != 0)
      return usage_error("dimension " + std::to_string(local[i]) + " of " + array.path +
                             " cannot be split into " + std::to_string(shares),
                         "choose another mesh");
    local[i] /= shares;
  }
  return local;
}

void add_to_state(const StepSpec& step, const WeightArray& array,
                  const std::vector<std::int64_t>& local, StateBytes& sum) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : local) elements *= dim;
  const Precision& precision = step.precision;
  (array.is_parameter ? sum.params : sum.other) += bytes_of(elements, array.type);
  if (!array.trained) return;
  sum.gradients += bytes_of(elements, precision.gradients);
  const bool is_matrix = array.dims.size() - (array.group >= 0 ? 1 : 0) >= 2;
  switch (step.optimizer) {
    case Optimizer::kAdamW:
      sum.optimizer +=
          bytes_of(elements, precision.first_moment) + bytes_of(elements, precision.second_moment);
      break;
    case Optimizer::kAdafactor:
      sum.optimizer += bytes_of(factored_elements(local, elements), precision.second_moment);
      break;
    case Optimizer::kMuon:  // embedding, head and vectors stay with AdamW
      sum.optimizer += bytes_of(elements, precision.first_moment);
      if (!is_matrix || array.role == WeightRole::kEmbedding || array.role == WeightRole::kHead)
        sum.optimizer += bytes_of(elements, precision.second_moment);
      break;
    case Optimizer::kSgd:
      break;
  }
}

Result<StateBytes> count_state(const StepSpec& step) {
  StateBytes sum;
  for (const WeightArray& array : list_weights(step)) {
    const auto local = local_dims(array, step.mesh);
    if (!local.ok()) return local.error();
    add_to_state(step, array, *local, sum);
  }
  return sum;
}

}  // namespace spillway
