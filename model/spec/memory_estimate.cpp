#include "model/spec/memory_estimate.h"

#include <algorithm>

#include "model/spec/remat_policy.h"

namespace spillway {
namespace {

/// What one layer of a group has: bytes and FLOPs on one device.
struct Layer {
  double forward_products = 0;  ///< FLOPs
  double recomputed_products = 0;
  double gathered = 0;       ///< bytes of all weights, put together
  double backward_live = 0;  ///< bytes beside stacks at the peak of the backward body
};

class Estimator {
 public:
  Estimator(const StepSpec& step, const WeightSums& weights, const std::vector<SavedTensor>& values,
            const StepTextOptions& options)
      : step_(step),
        model_(step.model),
        weights_(weights),
        values_(values),
        keeps_exponentials_(options.keeps_exponentials) {
    b_ = static_cast<double>(step.local_batch());
    s_ = static_cast<double>(step.local_sequence());
    t_ = b_ * s_;
    tp_ = static_cast<double>(step.mesh.tensor_shares());
    activation_ = element_bits(step.precision.activations) / 8.0;
  }

  MemoryEstimate run();

 private:
  bool saves(std::string_view name) const {
    return choice_of(step_, name) != SaveChoice::kRecompute;
  }
  Layer layer_of(std::size_t group) const;
  double experts_live(const MoeSpec& moe, double width) const;
  void add_products(MemoryEstimate& out, const std::vector<Layer>& layers) const;
  void add_peak(MemoryEstimate& out, const std::vector<Layer>& layers) const;

  const StepSpec& step_;
  const ModelSpec& model_;
  const WeightSums& weights_;
  const std::vector<SavedTensor>& values_;
  bool keeps_exponentials_;
  double b_, s_, t_, tp_, activation_;
  double turned_stacks_ = 0;  ///< what experts made, saved, a second time
};

/// Rows, masks and weights of experts at the peak of the backward body.
double Estimator::experts_live(const MoeSpec& moe, double width) const {
  const double rows = static_cast<double>(expert_rows(step_, moe));
  const double d = static_cast<double>(model_.embed);
  const double local =
      static_cast<double>(moe.experts) / (step_.dispatch == Dispatch::kCapacity
                                              ? 1.0
                                              : static_cast<double>(step_.mesh[MeshAxis::kExpert]));
  double live = 3 * local * d * width * activation_ + 3 * rows * d * activation_ +
                4 * rows * width * activation_;
  if (step_.dispatch == Dispatch::kCapacity) {
    live += t_ * static_cast<double>(moe.experts * expert_capacity(step_, moe)) * activation_;
    if (moe.gate_bias && !moe.gate_bias_is_trained)
      live += 4 * t_ * static_cast<double>(moe.experts * step_.mesh.batch_shares());
  }
  return live;
}

Layer Estimator::layer_of(std::size_t group) const {
  const LayerStack& layers = model_.groups[group];
  const AttentionSpec& a = layers.attention;
  const double d = static_cast<double>(model_.embed);
  const double heads = static_cast<double>(a.query_heads) / tp_;
  const double kv = (a.latent ? heads : static_cast<double>(a.kv_heads) / tp_);
  const double qk = static_cast<double>(a.head_dim), value = static_cast<double>(a.value_dim);
  Layer layer;
  layer.gathered = weights_.whole[group] * activation_;

  // Products: each weight once a token; of experts those that its rows pass. Latent ones have a
  // part to a rank ("down") and a part from it.
  double q = d * heads * qk, kv_products = d * kv * (qk + (a.keys_are_values ? 0 : value));
  double q_down = 0, kv_down = 0;
  if (a.latent) {
    const double rank = static_cast<double>(a.latent->query_rank);
    const double kv_rank = static_cast<double>(a.latent->kv_rank);
    if (rank > 0) {
      q = rank * heads * qk;
      q_down = d * rank;
    }
    kv_products = kv_rank * heads * (static_cast<double>(a.latent->content_dim) + value);
    kv_down = d * (kv_rank + static_cast<double>(a.latent->position_dim));
  }
  const double out = heads * value * d;
  const double inputs = model_.gated ? 2 : 1;
  double width = static_cast<double>(layers.mlp_width) / tp_;
  double feed_forward_out = d * width;
  double up = inputs * d * width;
  double routed = 0;
  if (layers.moe) {
    const MoeSpec& moe = *layers.moe;
    const double share = static_cast<double>(moe.width) / tp_;
    const double per_token = static_cast<double>(expert_rows(step_, moe)) / t_;
    routed = per_token * d * share;
    const double shared = static_cast<double>(moe.shared_width) / tp_;
    up = inputs * (routed + d * shared) + d * static_cast<double>(moe.experts);
    feed_forward_out = routed + d * shared;
    width = share;
  }
  double dispatch = 0;  // by products with a mask: out, and back
  if (layers.moe && step_.dispatch == Dispatch::kCapacity)
    dispatch = static_cast<double>(layers.moe->experts * expert_capacity(step_, *layers.moe)) * d;
  layer.forward_products =
      2 * t_ * (q + q_down + kv_products + kv_down + out + up + feed_forward_out + 2 * dispatch);
  // Recomputed: what a name that is not saved takes. Rows are dispatched again in any case, in the
  // place of a gradient that the mask does not have.
  double again = 0;
  if (!saves("query_proj")) again += q;
  if (!saves("query_wa_proj")) again += q_down;
  if (!saves("kv_wa_proj")) again += kv_down;
  if (!saves("key_proj") || !saves("value_proj")) again += kv_products;
  if (!saves("out_proj")) again += out;
  if (!saves("mlpwi_0") && !saves("moe_mlpwi_0") && !saves("mlpwi")) again += up;
  if (layers.moe && !saves("moe_mlpwo") && !saves("mlpwo")) again += routed;
  layer.recomputed_products = 2 * t_ * again;

  layer.backward_live = layer.gathered * (layers.moe ? 0 : 0.67) +
                        activation_ * t_ * (5 * d + heads * (qk + value) + kv * (qk + value));
  if (layers.moe)
    layer.backward_live += experts_live(*layers.moe, width);
  else
    layer.backward_live += activation_ * t_ * width * (inputs + (saves("mlpwi_0") ? 1 : 2));
  return layer;
}

void Estimator::add_peak(MemoryEstimate& out, const std::vector<Layer>& layers) const {
  const double d = static_cast<double>(model_.embed);
  const double vocabulary = static_cast<double>(model_.vocabulary) / tp_;
  const double tokens = t_ / static_cast<double>(step_.vocabulary_tiles);
  const double logits = tokens * vocabulary;
  const double head = d * vocabulary * activation_;
  const double arguments =
      static_cast<double>(
          (weights_.state.params + weights_.state.optimizer + weights_.state.other).value()) +
      16 * t_ * static_cast<double>(step_.accumulation);
  // State on the host comes back for the update.
  const double away =
      static_cast<double>(((step_.optimizer_on_host ? weights_.state.optimizer : Bytes(0)) +
                           (step_.params_on_host ? weights_.state.params : Bytes(0)))
                              .value());
  double base = arguments - away + weights_.turned + static_cast<double>(out.saved.device.value());
  if (step_.accumulation > 1)
    base += weights_.gradients + weights_.outer_gradients * 4 / activation_;
  const double one_hot = step_.embeds_by_product && b_ == 1 ? t_ * vocabulary : 0;
  double loss = base + one_hot + head + 2 * logits * activation_ +
                (keeps_exponentials_ ? 4 * logits : 0) + 2 * t_ * d * activation_ / tp_;
  if (tp_ > 1)  // the vocabulary's numbers, and what all devices see of the last layer
    loss += (step_.embeds_by_product ? 4 * logits : 0) + t_ * d * activation_;
  double live = 0;
  for (const Layer& layer : layers) live = std::max(live, layer.backward_live);
  // One of the head's gradient and its operand waits behind the loop.
  const double waits = std::min(head, logits * activation_);
  const double backward = base + one_hot + weights_.gradients + live + waits;
  const double update = arguments + weights_.gradients + weights_.outer_gradients + weights_.update;
  // What experts made is turned as a whole between the loops.
  const double turned = base + one_hot + turned_stacks_ + logits * activation_;
  const double most = std::max({loss, backward, update, turned});
  if (most == loss)
    out.peak_at = PeakPhase::kLoss;
  else if (most == turned)
    out.peak_at = PeakPhase::kBetweenLoops;
  else
    out.peak_at = most == backward ? PeakPhase::kBackward : PeakPhase::kUpdate;
  out.device_peak = Bytes(static_cast<std::int64_t>(most));
}

void Estimator::add_products(MemoryEstimate& out, const std::vector<Layer>& layers) const {
  const double stages = static_cast<double>(step_.mesh[MeshAxis::kStage]);
  double products = 0;
  for (std::size_t g = 0; g < layers.size(); ++g)
    products += static_cast<double>(model_.groups[g].layers) / stages *
                (3 * layers[g].forward_products + layers[g].recomputed_products);
  const double head = 2 * t_ * static_cast<double>(model_.embed * model_.vocabulary) / tp_;
  products += (step_.embeds_by_product ? 5 : 3) * head;
  out.products = Flops(products * static_cast<double>(step_.accumulation));
}

MemoryEstimate Estimator::run() {
  MemoryEstimate out;
  out.state = weights_.state;
  std::vector<Layer> layers;
  for (std::size_t g = 0; g < model_.groups.size(); ++g) layers.push_back(layer_of(g));
  for (const SavedTensor& tensor : values_) {
    if (!tensor.is_needed) continue;
    const SaveChoice choice = choice_of(step_, tensor);
    const std::int64_t count =
        model_.groups[static_cast<std::size_t>(tensor.group)].layers / step_.mesh[MeshAxis::kStage];
    if (choice == SaveChoice::kDevice) out.saved.device += tensor.bytes_per_layer() * count;
    if (choice != SaveChoice::kRecompute && tensor.names.back() == "moe_mlpwo" &&
        step_.dispatch == Dispatch::kCapacity)
      turned_stacks_ += static_cast<double>((tensor.bytes_per_layer() * count).value());
    if (choice == SaveChoice::kHost) out.saved.host += tensor.bytes_per_layer() * count;
  }
  out.host = out.saved.host;
  if (step_.optimizer_on_host) out.host += weights_.state.optimizer;
  if (step_.params_on_host) out.host += weights_.state.params;
  add_peak(out, layers);
  add_products(out, layers);
  return out;
}

}  // namespace

std::string_view name_of(PeakPhase phase) {
  switch (phase) {
    case PeakPhase::kLoss:
      return "loss";
    case PeakPhase::kBetweenLoops:
      return "between the loops";
    case PeakPhase::kBackward:
      return "backward";
    case PeakPhase::kUpdate:
      return "update";
  }
  return "";
}

Result<WeightSums> sum_weights(const StepSpec& step) {
  const double shares = static_cast<double>(step.mesh.tensor_shares());
  WeightSums sums;
  sums.whole.assign(step.model.groups.size(), 0);
  for (const WeightArray& array : list_weights(step)) {
    double local = 1;
    const auto dims = local_dims(array, step.mesh);
    if (!dims.ok()) return dims.error();
    for (const std::int64_t dim : *dims) local *= static_cast<double>(dim);
    const double bytes = local * element_bits(array.type) / 8;
    add_to_state(step, array, *dims, sums.state);
    if (array.group >= 0 && array.is_parameter) {
      double whole =
          static_cast<double>(array.elements()) /
          static_cast<double>(step.model.groups[static_cast<std::size_t>(array.group)].layers);
      for (const WeightAxis axis : array.axes) {
        if (axis == WeightAxis::kHeads || axis == WeightAxis::kMlp || axis == WeightAxis::kMlpMoe)
          whole /= shares;
        if (axis == WeightAxis::kExperts && step.dispatch != Dispatch::kCapacity)
          whole /= static_cast<double>(step.mesh[MeshAxis::kExpert]);
      }
      sums.whole[static_cast<std::size_t>(array.group)] += whole;
      if (array.dims.size() > 2) sums.turned += bytes;
    }
    if (!array.trained) continue;
    const double gradient = local * element_bits(step.precision.gradients) / 8;
    const bool turned = array.group >= 0 && array.dims.size() > 2;
    (array.group >= 0 ? sums.gradients : sums.outer_gradients) +=
        array.group >= 0 ? gradient : local * element_bits(step.precision.activations) / 8.0;
    if (turned && step.clips_gradients) {
      sums.update += gradient;
      if (array.role == WeightRole::kMlpOut || array.role == WeightRole::kOut)
        sums.update += gradient;
    }
  }
  return sums;
}

MemoryEstimate estimate_memory(const StepSpec& step, const WeightSums& weights,
                               const std::vector<SavedTensor>& values,
                               const StepTextOptions& options) {
  return Estimator(step, weights, values, options).run();
}

Result<MemoryEstimate> estimate_memory(const StepSpec& step, const StepTextOptions& options) {
  const Result<WeightSums> weights = sum_weights(step);
  if (!weights.ok()) return weights.error();
  return estimate_memory(step, *weights, list_saved_tensors(step), options);
}

}  // namespace spillway
