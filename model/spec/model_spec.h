// A decoder-only transformer as its configuration describes it: dimensions, no program. What a
// reader could not find it does not fill in; a ModelSpec has every dimension it needs.
//
// Leaves out what changes neither a size nor a product: epsilons, rope's constants, dropout,
// initialisers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway {

/// How one layer attends. With `latent` it is DeepSeek's: queries and keys come from narrow
/// projections, and `head_dim` is that of queries and keys, position part included.
struct AttentionSpec {
  struct Latent {
    std::int64_t query_rank = 0;  ///< 0: queries are projected in one step
    std::int64_t kv_rank = 0;
    std::int64_t content_dim = 0;   ///< of queries and keys without position ("nope")
    std::int64_t position_dim = 0;  ///< with position ("rope"); the key's is shared by all heads
  };
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;  ///< of a head; head_dim where nothing else is said
  std::optional<Latent> latent = {};
  std::int64_t window = 0;         ///< tokens a sliding window sees; 0: all before
  std::int64_t window_period = 1;  ///< of so many layers all but the last have the window; 1: all
  bool qkv_bias = false;
  bool out_bias = false;
  bool query_key_norm = false;
  bool norm_over_heads = false;  ///< the query/key norm has a scale a head and dimension
  bool sinks = false;            ///< a learnt logit a head
  bool fused_projection = false;
  bool keys_are_values = false;  ///< one projection for both
};

/// A layer of experts, of which each token uses some.
struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  std::int64_t width = 0;         ///< of an expert's hidden layer
  std::int64_t shared = 0;        ///< experts every token uses
  std::int64_t shared_width = 0;  ///< of all of those together
  bool gate_bias = false;
  bool gate_bias_is_trained = false;
  bool expert_bias = false;
};

/// Layers alike, one behind the other: what one scan goes over.
struct LayerStack {
  std::string name;  ///< "layers", "dense_layers", "moe_layers"
  std::int64_t layers = 0;
  AttentionSpec attention;
  std::int64_t mlp_width = 0;  ///< 0 where experts take its place
  std::optional<MoeSpec> moe = {};
};

struct ModelSpec {
  std::string name;   ///< "llama3.1-8b"
  std::string block;  ///< MaxText's decoder_block: "llama2", "deepseek", …
  std::int64_t embed = 0;
  std::int64_t vocabulary = 0;
  bool tied_head = false;  ///< logits come from the embedding
  bool gated = true;       ///< two inputs to the activation, as SwiGLU; else one
  std::int64_t norms_per_layer = 2;
  bool norm_bias = false;
  bool mlp_bias = false;
  std::int64_t trained_positions = 0;
  std::vector<LayerStack> groups;

  std::int64_t layers() const {
    std::int64_t sum = 0;
    for (const LayerStack& group : groups) sum += group.layers;
    return sum;
  }
};

}  // namespace spillway
