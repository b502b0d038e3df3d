// FLOPs of a training step by the formulas with which frameworks compute the TFLOP/s they log: from
// a model's dimensions alone, no program needed. Their "TFLOP/s" compare only when counted alike.
//
// Counted: matrix products and attention, forward once and backward twice. Left out, as in the
// logs: recomputation, optimizer, norms, softmax, embedding lookup, capacity padding of experts.
// What a compiled program really does is program_flops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/units.h"

namespace spillway {

/// Attention through compressed queries, keys and values (DeepSeek). Sizes of one head, and ranks.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries are not compressed
  std::int64_t key_value_rank = 0;
  std::int64_t plain_head = 0;   ///< of q and k, without position
  std::int64_t rotary_head = 0;  ///< of q and k, with position; k's is shared by all heads
  std::int64_t value_head = 0;
};

struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;  ///< chosen for each token
  std::int64_t shared = 0;  ///< that every token passes
  std::int64_t ffn_size = 0;
  std::int64_t dense_layers = 0;  ///< layers, the first ones, with a plain feed-forward block
};

/// Layers whose attention looks back `window` tokens at most.
struct SlidingWindow {
  std::int64_t layers = 0;
  std::int64_t window = 0;
};

/// Dimensions of a decoder, in the words of its configuration.
struct ModelDimensions {
  std::int64_t layers = 0;
  std::int64_t model_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;   ///< fewer than heads: grouped queries. Not read with `latent`
  std::int64_t head_size = 0;  ///< not read with `latent`
  std::int64_t ffn_size = 0;
  std::int64_t ffn_inputs = 2;  ///< products into the block: 2 for gated ones (SwiGLU), else 1
  std::int64_t vocabulary = 0;
  std::optional<LatentAttention> latent = {};
  std::optional<Experts> experts = {};
  std::optional<SlidingWindow> sliding = {};
};

/// What one device does in a step.
struct TrainingBatch {
  double sequences = 0;  ///< below 1 where several devices share one
  std::int64_t tokens_per_sequence = 0;
  std::int64_t accumulation_steps = 1;  ///< each with so many sequences
};

/// How attention is counted.
enum class AttentionCount {
  /// The pairs that a causal mask lets through: half. MaxText since its pull request 1988
  /// (DeepSeek's latent attention: somewhat later).
  kCausal,
  /// All pairs of a query and a key. MaxText before.
  kAllPairs,
};

struct TrainingFlops {
  Flops attention{};  ///< products of queries with keys, and of weights with values
  Flops total{};      ///< attention among it
};

/// With t = 3 x tokens (forward, and backward twice that), S tokens a sequence, W a window, d the
/// model's size and H heads of size h:
///   q, k, v      2 t d (H + 2 kv_heads) h            latent: 2 t d (H (plain + rotary)), or with
///                                                    compression 2 t q_rank (d + H (plain +
///                                                    rotary)); + 2 t (d (kv_rank + rotary) +
///                                                    kv_rank H (plain + value))
///   out          2 t d H h                           latent: 2 t d H value
///   attention    4 t S H h, causal half of it;       latent: plain + rotary + value for 2 h
///                a window: W - W^2 / (2 S) for S
///   feed-forward 2 t d ffn_size (ffn_inputs + 1)     experts: (active + shared) times that with
///                                                    their size, and 2 t d count
///   vocabulary   2 t d vocabulary, once
/// From: MaxText's calculate_tflops_training_per_device; its published logs come out to 0.04 %.
/// Megatron's rates are the same for 405B (0.04 %), and 0.3 % apart for DeepSeek-V3.
TrainingFlops training_flops(const ModelDimensions& model, const TrainingBatch& batch,
                             AttentionCount count = AttentionCount::kCausal);

}  // namespace spillway
