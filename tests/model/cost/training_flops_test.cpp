#include "model/cost/training_flops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace spillway {
namespace {

constexpr ModelDimensions kLlama8B{.layers = 32,
                                   .model_size = 4096,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .head_size = 128,
                                   .ffn_size = 14336,
                                   .vocabulary = 128256};
constexpr ModelDimensions kLlama70B{.layers = 80,
                                    .model_size = 8192,
                                    .heads = 64,
                                    .kv_heads = 8,
                                    .head_size = 128,
                                    .ffn_size = 28672,
                                    .vocabulary = 128256};
constexpr ModelDimensions kLlama405B{.layers = 126,
                                     .model_size = 16384,
                                     .heads = 128,
                                     .kv_heads = 8,
                                     .head_size = 128,
                                     .ffn_size = 53248,
                                     .vocabulary = 128256};
constexpr ModelDimensions kLlama2Of70B{.layers = 80,
                                       .model_size = 8192,
                                       .heads = 64,
                                       .kv_heads = 8,
                                       .head_size = 128,
                                       .ffn_size = 28672,
                                       .vocabulary = 32000};
constexpr LatentAttention kDeepSeekAttention{.query_rank = 1536,
                                             .key_value_rank = 512,
                                             .plain_head = 128,
                                             .rotary_head = 64,
                                             .value_head = 128};
constexpr ModelDimensions kDeepSeekV3{
    .layers = 61,
    .model_size = 7168,
    .heads = 128,
    .ffn_size = 18432,
    .vocabulary = 129280,
    .latent = kDeepSeekAttention,
    .experts =
        Experts{.count = 256, .active = 8, .shared = 1, .ffn_size = 2048, .dense_layers = 3}};
constexpr ModelDimensions kDeepSeekV2Lite{
    .layers = 27,
    .model_size = 2048,
    .heads = 16,
    .ffn_size = 10944,
    .vocabulary = 102400,
    .latent = LatentAttention{.query_rank = 0,
                              .key_value_rank = 512,
                              .plain_head = 128,
                              .rotary_head = 64,
                              .value_head = 128},
    .experts = Experts{.count = 64, .active = 6, .shared = 2, .ffn_size = 1408, .dense_layers = 1}};

constexpr AttentionCount kNow = AttentionCount::kCausal;
constexpr AttentionCount kBefore = AttentionCount::kAllPairs;

/// Logged step time x logged rate, by row of the collection of published results.
TEST_CASE("MaxText's published logs, in the count of their version") {
  struct Row {
    const char* id;
    ModelDimensions model;
    double sequences;
    std::int64_t tokens;
    AttentionCount count;
    double logged;  ///< TFLOP a device and step
  };
  const Row rows[] = {
      {"G05 DeepSeek-V2-Lite", kDeepSeekV2Lite, 24, 2048, kNow, 764.67},
      {"D19 405B on Ironwood", kLlama405B, 6, 8192, kNow, 98.34 * 1261.40},
      {"D16 DeepSeek-V3 on Ironwood", kDeepSeekV3, 16, 4096, kNow, 27.02 * 607.53},
      {"D21 70B on Ironwood", kLlama70B, 4, 8192, kNow, 12.2 * 1207.05},
      {"D22 70B, long sequences", kLlama70B, 0.25, 131072, kNow, 34.02 * 897.94},
      {"D35 405B on v5p", kLlama405B, 2, 8192, kNow, 131.474 * 314.530},
      {"D34 DeepSeek-V3 on v5p", kDeepSeekV3, 12, 4096, kBefore, 90.668 * 152.415},
      {"D26 405B on v6e", kLlama405B, 1, 8192, kBefore, 54.803 * 392.454},
      {"D27 70B on 256 v6e", kLlama70B, 5, 8192, kBefore, 42.656 * 462.297},
      {"D28 70B on 128 v6e", kLlama70B, 4, 8192, kBefore, 34.786 * 453.500},
      {"D29 70B on 64 v6e", kLlama70B, 2, 8192, kBefore, 18.688 * 422.091},
      {"D30 70B on 32 v6e", kLlama70B, 2, 8192, kBefore, 17.79 * 443.385},
      {"D31 8B on 8 v6e", kLlama8B, 3, 8192, kBefore, 3.443 * 413.433},
      {"D32 8B on 64 v6e", kLlama8B, 5, 8192, kBefore, 5.652 * 419.701},
      {"D33 Llama 2 70B on v6e", kLlama2Of70B, 2, 4096, kBefore, 9.052 * 402.274},
      {"D06 405B on B200", kLlama405B, 2, 8192, kBefore, 28.294 * 1520.276},
      {"D07 70B on B200", kLlama70B, 8, 8192, kBefore, 20.935 * 1507.142},
      {"D08 70B on H200", kLlama70B, 2, 8192, kBefore, 15.516 * 508.371},
      {"D01a 70B on H100", kLlama70B, 2, 8192, kBefore, 7887.7},
  };
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const TrainingFlops flops = training_flops(
        row.model, {.sequences = row.sequences, .tokens_per_sequence = row.tokens}, row.count);
    CHECK(std::abs(flops.total.value() / (row.logged * 1e12) - 1) < 0.0005);
  }
}

TEST_CASE("the share of attention that a log names") {
  const TrainingFlops flops =
      training_flops(kDeepSeekV2Lite, {.sequences = 24, .tokens_per_sequence = 2048});
  CHECK(100 * flops.attention.value() / flops.total.value() == doctest::Approx(5.46).epsilon(1e-3));
}

/// 2 layers, model 4, 2 heads of 3 with one key head, feed-forward 5, vocabulary 7.
constexpr ModelDimensions kToy{.layers = 2,
                               .model_size = 4,
                               .heads = 2,
                               .kv_heads = 1,
                               .head_size = 3,
                               .ffn_size = 5,
                               .vocabulary = 7};

TEST_CASE("each part of a toy model") {
  // forward, a token and layer: q 2*4*6 = 48, k and v 2*4*3 = 24 each, out 48, feed-forward
  // 3*2*4*5 = 120; the vocabulary once 2*4*7 = 56; attention 4*8*6 = 192 a token of 8
  const double token = 2 * (48 + 24 + 24 + 48 + 120) + 56;
  const double attention = 2 * 192;
  struct Row {
    const char* name;
    ModelDimensions model;
    TrainingBatch batch;
    AttentionCount count;
    double attention, total;  ///< of one token, forward
  };
  const TrainingBatch one{.sequences = 1, .tokens_per_sequence = 8};
  ModelDimensions plain = kToy;  // no gate: one product in, one out
  plain.ffn_inputs = 1;
  ModelDimensions experts = kToy;  // a dense layer, then 3 of 6 experts of size 1: 5 * 24 / 5 each
  experts.experts = Experts{.count = 6, .active = 2, .shared = 1, .ffn_size = 1, .dense_layers = 1};
  ModelDimensions sliding = kToy;  // 8*4 - 8 = 24 pairs instead of 32
  sliding.sliding = SlidingWindow{.layers = 1, .window = 4};
  ModelDimensions wide = kToy;  // a window beyond the sequence is none
  wide.sliding = SlidingWindow{.layers = 2, .window = 100};
  const Row rows[] = {
      {"all pairs", kToy, one, kBefore, attention, token + attention},
      {"causal", kToy, one, kNow, attention / 2, token + attention / 2},
      {"no gate", plain, one, kNow, attention / 2, token - 2 * 40 + attention / 2},
      {"experts", experts, one, kNow, attention / 2,
       token - 120 + 3 * 24 + 2 * 4 * 6 + attention / 2},
      {"sliding", sliding, one, kNow, 96 + 72, token + 96 + 72},
      {"a wide window", wide, one, kNow, attention / 2, token + attention / 2},
      {"accumulation",
       kToy,
       {.sequences = 0.5, .tokens_per_sequence = 8, .accumulation_steps = 2},
       kNow,
       attention / 2,
       token + attention / 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const TrainingFlops flops = training_flops(row.model, row.batch, row.count);
    CHECK(flops.attention == Flops(3 * 8 * row.attention));
    CHECK(flops.total == Flops(3 * 8 * row.total));
  }
}

TEST_CASE("latent attention, with and without compressed queries") {
  ModelDimensions model = kToy;
  model.latent = LatentAttention{
      .query_rank = 2, .key_value_rank = 3, .plain_head = 4, .rotary_head = 1, .value_head = 2};
  const TrainingBatch one{.sequences = 1, .tokens_per_sequence = 8};
  // a token and layer: q 2*(4*2 + 2*2*5) = 56, k and v 2*(4*4 + 3*2*6) = 104, out 2*4*2*2 = 32;
  // attention of all pairs 2*8*2*7 = 224
  const double rest = 2 * 120 + 56;
  const TrainingFlops flops = training_flops(model, one, kBefore);
  CHECK(flops.attention == Flops(3 * 8 * 2 * 224));
  CHECK(flops.total == Flops(3 * 8 * (2 * (56 + 104 + 32 + 224) + rest)));
  model.latent->query_rank = 0;  // q 2*4*2*5 = 80
  CHECK(training_flops(model, one, kBefore).total ==
        Flops(3 * 8 * (2 * (80 + 104 + 32 + 224) + rest)));
}

}  // namespace
}  // namespace spillway
