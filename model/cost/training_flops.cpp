#include "model/cost/training_flops.h"

#include <algorithm>

namespace spillway {
namespace {

constexpr double kForwardAndBackward = 3;

double real(std::int64_t size) { return static_cast<double>(size); }

/// What one token costs in a forward pass of one layer; `multiply_adds` each two operations.
double projections(const ModelDimensions& model) {
  const double d = real(model.model_size);
  const double heads = real(model.heads);
  if (!model.latent) {
    const double head = real(model.head_size);
    return 2 * d * (2 * heads + 2 * real(model.kv_heads)) * head;
  }
  const LatentAttention& latent = *model.latent;
  const double query_head = real(latent.plain_head + latent.rotary_head);
  const double query_rank = real(latent.query_rank);
  const double query =
      latent.query_rank > 0 ? query_rank * (d + heads * query_head) : d * heads * query_head;
  const double key_value =
      d * real(latent.key_value_rank + latent.rotary_head) +
      real(latent.key_value_rank) * heads * real(latent.plain_head + latent.value_head);
  const double out = d * heads * real(latent.value_head);
  return 2 * (query + key_value + out);
}

double feed_forward(const ModelDimensions& model, std::int64_t size) {
  return 2 * real(model.model_size) * real(size) * real(model.ffn_inputs + 1);
}

double expert_layer(const ModelDimensions& model, const Experts& experts) {
  const double router = 2 * real(model.model_size) * real(experts.count);
  return router + real(experts.active + experts.shared) * feed_forward(model, experts.ffn_size);
}

/// Pairs of a query and a key of one sequence.
double pairs(double tokens, AttentionCount count) {
  return count == AttentionCount::kCausal ? tokens * tokens / 2 : tokens * tokens;
}

double pairs_in_window(double tokens, double window) {
  const double reach = std::min(tokens, window);
  return tokens * reach - reach * reach / 2;
}

/// Of all layers, for one sequence, forward.
double attention(const ModelDimensions& model, double tokens, AttentionCount count) {
  const double sizes =
      model.latent
          ? real(model.latent->plain_head + model.latent->rotary_head + model.latent->value_head)
          : 2 * real(model.head_size);
  const SlidingWindow sliding = model.sliding.value_or(SlidingWindow{});
  const double all_pairs = real(model.layers - sliding.layers) * pairs(tokens, count) +
                           real(sliding.layers) * pairs_in_window(tokens, real(sliding.window));
  return 2 * all_pairs * real(model.heads) * sizes;
}

}  // namespace

TrainingFlops training_flops(const ModelDimensions& model, const TrainingBatch& batch,
                             AttentionCount count) {
  const double per_sequence = real(batch.tokens_per_sequence);
  const double sequences = batch.sequences * real(batch.accumulation_steps);
  const std::int64_t dense = model.experts ? model.experts->dense_layers : model.layers;
  double of_token = real(model.layers) * projections(model) +
                    real(dense) * feed_forward(model, model.ffn_size) +
                    2 * real(model.model_size) * real(model.vocabulary);
  if (model.experts) of_token += real(model.layers - dense) * expert_layer(model, *model.experts);
  const double of_attention = sequences * attention(model, per_sequence, count);
  const double all = of_token * sequences * per_sequence + of_attention;
  return {.attention = Flops(kForwardAndBackward * of_attention),
          .total = Flops(kForwardAndBackward * all)};
}

}  // namespace spillway
