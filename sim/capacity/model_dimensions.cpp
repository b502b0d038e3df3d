#include "sim/capacity/model_dimensions.h"

#include <algorithm>

namespace spillway {

ModelDimensions dimensions_of(const ModelSpec& model) {
  ModelDimensions d;
  d.layers = model.layers();
  d.model_size = model.embed;
  d.vocabulary = model.vocabulary;
  d.ffn_inputs = model.gated ? 2 : 1;
  for (const LayerStack& group : model.groups) {
    const AttentionSpec& attention = group.attention;
    d.heads = attention.query_heads;
    d.kv_heads = attention.kv_heads;
    d.head_size = attention.head_dim;
    if (attention.latent)
      d.latent = LatentAttention{.query_rank = attention.latent->query_rank,
                                 .key_value_rank = attention.latent->kv_rank,
                                 .plain_head = attention.latent->content_dim,
                                 .rotary_head = attention.latent->position_dim,
                                 .value_head = attention.value_dim};
    if (attention.window > 0) {
      const std::int64_t period = std::max<std::int64_t>(attention.window_period, 1);
      d.sliding = SlidingWindow{.layers = group.layers - (period > 1 ? group.layers / period : 0),
                                .window = attention.window};
    }
    if (!group.moe) {
      d.ffn_size = group.mlp_width;
      continue;
    }
    const MoeSpec& moe = *group.moe;
    d.experts = Experts{.count = moe.experts,
                        .active = moe.per_token,
                        .shared = moe.shared,
                        .ffn_size = moe.width,
                        .dense_layers = model.layers() - group.layers};
  }
  return d;
}

}  // namespace spillway
