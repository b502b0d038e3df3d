#include "model/spec/read_hf_config.h"

#include <doctest/doctest.h>

#include "model/spec/read_maxtext.h"
#include "model/spec/weights.h"

namespace spillway {
namespace {

ModelSpec parse(const char* text) {
  const auto model = parse_hf_config(text, "config.json");
  REQUIRE_MESSAGE(model.ok(), (model.ok() ? "" : to_text(model.error())));
  return *model;
}

TEST_CASE("a model is the same by either maker's keys") {
  struct Row {
    const char* maxtext;
    const char* config;
  };
  const Row rows[] = {
      {"llama3.1-8b",
       R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "head_dim": null, "vocab_size": 128256, "tie_word_embeddings": false})"},
      {"qwen3-0.6b",
       R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
          "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
          "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": true})"},
      {"gemma3-27b",
       R"({"model_type": "gemma3", "text_config": {"hidden_size": 5376,
          "intermediate_size": 21504, "num_hidden_layers": 62, "num_attention_heads": 32,
          "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024,
          "sliding_window_pattern": 6, "vocab_size": 262144}})"},
      {"mixtral-8x7b",
       R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000})"},
      {"deepseek3-671b",
       R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
          "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128,
          "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
          "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
          "topk_method": "noaux_tc", "q_lora_rank": 1536, "kv_lora_rank": 512,
          "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
          "vocab_size": 129280})"},
      {"deepseek2-16b",
       R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
          "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
          "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
          "num_experts_per_tok": 6, "first_k_dense_replace": 1, "topk_method": "greedy",
          "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400})"},
      {"gpt-oss-20b",
       R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
          "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
          "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4,
          "attention_bias": true, "sliding_window": 128, "vocab_size": 201088})"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.maxtext);
    const auto theirs = find_model(row.maxtext);
    REQUIRE(theirs.ok());
    const ModelSpec ours = parse(row.config);
    CHECK(count_parameters(ours) == count_parameters(*theirs));
    REQUIRE(ours.groups.size() == theirs->groups.size());
    for (std::size_t g = 0; g < ours.groups.size(); ++g) {
      CHECK(ours.groups[g].layers == theirs->groups[g].layers);
      CHECK(ours.groups[g].attention.head_dim == theirs->groups[g].attention.head_dim);
      CHECK(ours.groups[g].attention.window == theirs->groups[g].attention.window);
      CHECK(ours.groups[g].attention.window_period == theirs->groups[g].attention.window_period);
    }
  }
}

TEST_CASE("what is missing is named under all names it could have") {
  const std::pair<const char*, const char*> rows[] = {
      {"[]",
       "config.json: error: is no JSON object\n  a config.json of Hugging Face begins with '{'"},
      {"{}", "config.json: error: is missing: 'model_type', how a layer is made"},
      {R"({"model_type": "mamba"})", "config.json: error: 'model_type' 'mamba' is not modelled"},
      {R"({"model_type": "llama", "vocab_size": 32})",
       "config.json: error: is missing: 'hidden_size', 'n_embd', 'd_model', the model's dimension"},
      {R"({"model_type": "llama", "hidden_size": 64, "vocab_size": 32, "num_hidden_layers": 2,
          "num_attention_heads": 4})",
       "config.json: error: is missing: 'intermediate_size', 'n_inner', 'ffn_dim', a layer's "
       "hidden dimension"},
      {R"({"model_type": "llama", "hidden_size": 66, "vocab_size": 32, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 8})",
       "config.json: error: 'head_dim' is missing, and the heads do not divide 'hidden_size'"},
  };
  for (const auto& [text, message] : rows) {
    CAPTURE(text);
    const auto model = parse_hf_config(text, "config.json");
    REQUIRE_FALSE(model.ok());
    CHECK(to_text(model.error()) == message);
  }
}

}  // namespace
}  // namespace spillway
