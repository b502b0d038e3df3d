#include "model/spec/known_models.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace spillway {
namespace {

struct Row {
  std::string_view name;
  std::string_view settings;
};

// In alphabetical order.
constexpr Row kModels[] = {
    {"deepseek2-16b",
     "{decoder_block: deepseek, attention_type: mla, base_emb_dim: 2048, base_num_query_heads: "
     "16, base_num_kv_heads: 16, base_num_decoder_layers: 27, first_num_dense_layers: 1, "
     "base_mlp_dim: 10944, base_moe_mlp_dim: 1408, num_experts: 64, num_experts_per_tok: 6, "
     "shared_experts: 2, routed_bias: false, q_lora_rank: 0, kv_lora_rank: 512, "
     "qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 102400, "
     "mlp_activations: [silu, linear]}"},
    {"deepseek2-236b",
     "{decoder_block: deepseek, attention_type: mla, base_emb_dim: 5120, base_num_query_heads: "
     "128, base_num_kv_heads: 128, base_num_decoder_layers: 60, first_num_dense_layers: 1, "
     "base_mlp_dim: 12288, base_moe_mlp_dim: 1536, num_experts: 160, num_experts_per_tok: 6, "
     "shared_experts: 2, routed_bias: false, q_lora_rank: 1536, kv_lora_rank: 512, "
     "qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 102400, "
     "mlp_activations: [silu, linear]}"},
    {"deepseek3-671b",
     "{decoder_block: deepseek, attention_type: mla, base_emb_dim: 7168, base_num_query_heads: "
     "128, base_num_kv_heads: 128, base_num_decoder_layers: 61, first_num_dense_layers: 3, "
     "base_mlp_dim: 18432, base_moe_mlp_dim: 2048, num_experts: 256, num_experts_per_tok: 8, "
     "shared_experts: 1, routed_bias: true, q_lora_rank: 1536, kv_lora_rank: 512, "
     "qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 129280, "
     "mlp_activations: [silu, linear]}"},
    {"gemma-2b",
     "{decoder_block: gemma, base_emb_dim: 2048, base_num_query_heads: 8, base_num_kv_heads: "
     "1, head_dim: 256, base_num_decoder_layers: 18, base_mlp_dim: 16384, vocab_size: 256128, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true}"},
    {"gemma-7b",
     "{decoder_block: gemma, base_emb_dim: 3072, base_num_query_heads: 16, base_num_kv_heads: "
     "16, head_dim: 256, base_num_decoder_layers: 28, base_mlp_dim: 24576, vocab_size: 256128, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true}"},
    {"gemma2-27b",
     "{decoder_block: gemma2, base_emb_dim: 4608, base_num_query_heads: 32, base_num_kv_heads: "
     "16, head_dim: 128, base_num_decoder_layers: 23, base_mlp_dim: 36864, vocab_size: 256128, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 4096, "
     "use_post_attn_norm: true, use_post_ffw_norm: true}"},
    {"gemma2-2b",
     "{decoder_block: gemma2, base_emb_dim: 2304, base_num_query_heads: 8, base_num_kv_heads: "
     "4, head_dim: 256, base_num_decoder_layers: 13, base_mlp_dim: 9216, vocab_size: 256128, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 4096, "
     "use_post_attn_norm: true, use_post_ffw_norm: true}"},
    {"gemma2-9b",
     "{decoder_block: gemma2, base_emb_dim: 3584, base_num_query_heads: 16, base_num_kv_heads: "
     "8, head_dim: 256, base_num_decoder_layers: 21, base_mlp_dim: 14336, vocab_size: 256128, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 4096, "
     "use_post_attn_norm: true, use_post_ffw_norm: true}"},
    {"gemma3-12b",
     "{decoder_block: gemma3, base_emb_dim: 3840, base_num_query_heads: 16, base_num_kv_heads: "
     "8, head_dim: 256, base_num_decoder_layers: 48, base_mlp_dim: 15360, vocab_size: 262144, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 1024, "
     "use_post_attn_norm: true, use_post_ffw_norm: true}"},
    {"gemma3-27b",
     "{decoder_block: gemma3, base_emb_dim: 5376, base_num_query_heads: 32, base_num_kv_heads: "
     "16, head_dim: 128, base_num_decoder_layers: 62, base_mlp_dim: 21504, vocab_size: 262144, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 1024, "
     "use_post_attn_norm: true, use_post_ffw_norm: true}"},
    {"gemma3-4b",
     "{decoder_block: gemma3, base_emb_dim: 2560, base_num_query_heads: 8, base_num_kv_heads: "
     "4, head_dim: 256, base_num_decoder_layers: 34, base_mlp_dim: 10240, vocab_size: 262144, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 1024, "
     "use_post_attn_norm: true, use_post_ffw_norm: true}"},
    {"gemma4-31b",
     "{decoder_block: gemma4, base_emb_dim: 5376, base_num_query_heads: 32, base_num_kv_heads: "
     "16, head_dim: 256, base_num_decoder_layers: 60, base_mlp_dim: 21504, vocab_size: 262144, "
     "mlp_activations: [gelu, linear], logits_via_embedding: true, sliding_window_size: 1024, "
     "use_post_attn_norm: true, use_post_ffw_norm: true, global_head_dim: 512, "
     "global_num_kv_heads: 4, share_kv_projections: true, v_norm_with_scale: false}"},
    {"gpt-oss-120b",
     "{decoder_block: gpt_oss, base_emb_dim: 2880, base_num_query_heads: 64, "
     "base_num_kv_heads: 8, head_dim: 64, base_num_decoder_layers: 36, base_mlp_dim: 2880, "
     "vocab_size: 201088, attention_bias: true, attention_sink: true, mlp_bias: true, "
     "routed_bias: true, sliding_window_size: 128, mlp_activations: [sigmoid, linear], "
     "base_moe_mlp_dim: 2880, num_experts: 128, num_experts_per_tok: 4}"},
    {"gpt-oss-20b",
     "{decoder_block: gpt_oss, base_emb_dim: 2880, base_num_query_heads: 64, "
     "base_num_kv_heads: 8, head_dim: 64, base_num_decoder_layers: 24, base_mlp_dim: 2880, "
     "vocab_size: 201088, attention_bias: true, attention_sink: true, mlp_bias: true, "
     "routed_bias: true, sliding_window_size: 128, mlp_activations: [sigmoid, linear], "
     "base_moe_mlp_dim: 2880, num_experts: 32, num_experts_per_tok: 4}"},
    {"gpt3-175b",
     "{decoder_block: gpt3, base_emb_dim: 12288, base_num_query_heads: 96, base_num_kv_heads: "
     "96, head_dim: 128, base_num_decoder_layers: 96, base_mlp_dim: 49152, vocab_size: 50304, "
     "mlp_activations: [gelu], logits_via_embedding: true, fused_qkv: true, "
     "trainable_position_size: 16384}"},
    {"gpt3-22b",
     "{decoder_block: gpt3, base_emb_dim: 6144, base_num_query_heads: 24, base_num_kv_heads: "
     "24, head_dim: 256, base_num_decoder_layers: 48, base_mlp_dim: 24576, vocab_size: 32768, "
     "mlp_activations: [gelu], logits_via_embedding: true, fused_qkv: true, "
     "trainable_position_size: 16384}"},
    {"gpt3-6b",
     "{decoder_block: gpt3, base_emb_dim: 3072, base_num_query_heads: 12, base_num_kv_heads: "
     "12, head_dim: 256, base_num_decoder_layers: 48, base_mlp_dim: 12288, vocab_size: 32768, "
     "mlp_activations: [gelu], logits_via_embedding: true, fused_qkv: true, "
     "trainable_position_size: 16384}"},
    {"kimi-k2-1t",
     "{decoder_block: deepseek, attention_type: mla, base_emb_dim: 7168, base_num_query_heads: "
     "64, base_num_kv_heads: 64, base_num_decoder_layers: 61, first_num_dense_layers: 1, "
     "base_mlp_dim: 18432, base_moe_mlp_dim: 2048, num_experts: 384, num_experts_per_tok: 8, "
     "shared_experts: 1, routed_bias: true, q_lora_rank: 1536, kv_lora_rank: 512, "
     "qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 163840, "
     "mlp_activations: [silu, linear]}"},
    {"llama2-13b",
     "{decoder_block: llama2, base_emb_dim: 5120, base_num_query_heads: 40, base_num_kv_heads: "
     "40, head_dim: 128, base_num_decoder_layers: 40, base_mlp_dim: 13824, vocab_size: 32000, "
     "mlp_activations: [silu, linear]}"},
    {"llama2-70b",
     "{decoder_block: llama2, base_emb_dim: 8192, base_num_query_heads: 64, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 80, base_mlp_dim: 28672, vocab_size: 32000, "
     "mlp_activations: [silu, linear]}"},
    {"llama2-7b",
     "{decoder_block: llama2, base_emb_dim: 4096, base_num_query_heads: 32, base_num_kv_heads: "
     "32, head_dim: 128, base_num_decoder_layers: 32, base_mlp_dim: 11008, vocab_size: 32000, "
     "mlp_activations: [silu, linear]}"},
    {"llama3-405b",
     "{decoder_block: llama2, base_emb_dim: 16384, base_num_query_heads: 128, "
     "base_num_kv_heads: 8, head_dim: 128, base_num_decoder_layers: 126, base_mlp_dim: 53248, "
     "vocab_size: 128256, mlp_activations: [silu, linear]}"},
    {"llama3-70b",
     "{decoder_block: llama2, base_emb_dim: 8192, base_num_query_heads: 64, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 80, base_mlp_dim: 28672, vocab_size: 128256, "
     "mlp_activations: [silu, linear]}"},
    {"llama3-8b",
     "{decoder_block: llama2, base_emb_dim: 4096, base_num_query_heads: 32, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 32, base_mlp_dim: 14336, vocab_size: 128256, "
     "mlp_activations: [silu, linear]}"},
    {"llama3.1-405b",
     "{decoder_block: llama2, base_emb_dim: 16384, base_num_query_heads: 128, "
     "base_num_kv_heads: 8, head_dim: 128, base_num_decoder_layers: 126, base_mlp_dim: 53248, "
     "vocab_size: 128256, mlp_activations: [silu, linear]}"},
    {"llama3.1-70b",
     "{decoder_block: llama2, base_emb_dim: 8192, base_num_query_heads: 64, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 80, base_mlp_dim: 28672, vocab_size: 128256, "
     "mlp_activations: [silu, linear]}"},
    {"llama3.1-8b",
     "{decoder_block: llama2, base_emb_dim: 4096, base_num_query_heads: 32, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 32, base_mlp_dim: 14336, vocab_size: 128256, "
     "mlp_activations: [silu, linear]}"},
    {"llama3.3-70b",
     "{decoder_block: llama2, base_emb_dim: 8192, base_num_query_heads: 64, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 80, base_mlp_dim: 28672, vocab_size: 128256, "
     "mlp_activations: [silu, linear]}"},
    {"mistral-7b",
     "{decoder_block: mistral, base_emb_dim: 4096, base_num_query_heads: 32, "
     "base_num_kv_heads: 8, head_dim: 128, base_num_decoder_layers: 32, base_mlp_dim: 14336, "
     "vocab_size: 32000, mlp_activations: [silu, linear]}"},
    {"mixtral-8x22b",
     "{decoder_block: mixtral, base_emb_dim: 6144, base_num_query_heads: 48, "
     "base_num_kv_heads: 8, head_dim: 128, base_num_decoder_layers: 56, base_mlp_dim: 16384, "
     "vocab_size: 32768, mlp_activations: [silu, linear], base_moe_mlp_dim: 16384, "
     "num_experts: 8, num_experts_per_tok: 2}"},
    {"mixtral-8x7b",
     "{decoder_block: mixtral, base_emb_dim: 4096, base_num_query_heads: 32, "
     "base_num_kv_heads: 8, head_dim: 128, base_num_decoder_layers: 32, base_mlp_dim: 14336, "
     "vocab_size: 32000, mlp_activations: [silu, linear], base_moe_mlp_dim: 14336, "
     "num_experts: 8, num_experts_per_tok: 2}"},
    {"qwen2.5-1.5b",
     "{decoder_block: qwen2, base_emb_dim: 1536, base_num_query_heads: 12, base_num_kv_heads: "
     "2, head_dim: 128, base_num_decoder_layers: 28, base_mlp_dim: 8960, vocab_size: 151936, "
     "mlp_activations: [silu, linear], attention_bias: true, logits_via_embedding: true}"},
    {"qwen2.5-14b",
     "{decoder_block: qwen2, base_emb_dim: 5120, base_num_query_heads: 40, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 48, base_mlp_dim: 13824, vocab_size: 152064, "
     "mlp_activations: [silu, linear], attention_bias: true}"},
    {"qwen2.5-7b",
     "{decoder_block: qwen2, base_emb_dim: 3584, base_num_query_heads: 28, base_num_kv_heads: "
     "4, head_dim: 128, base_num_decoder_layers: 28, base_mlp_dim: 18944, vocab_size: 152064, "
     "mlp_activations: [silu, linear], attention_bias: true}"},
    {"qwen3-0.6b",
     "{decoder_block: qwen3, base_emb_dim: 1024, base_num_query_heads: 16, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 28, base_mlp_dim: 3072, vocab_size: 151936, "
     "mlp_activations: [silu, linear], use_qk_norm: true, logits_via_embedding: true}"},
    {"qwen3-1.7b",
     "{decoder_block: qwen3, base_emb_dim: 2048, base_num_query_heads: 16, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 28, base_mlp_dim: 6144, vocab_size: 151936, "
     "mlp_activations: [silu, linear], use_qk_norm: true, logits_via_embedding: true}"},
    {"qwen3-14b",
     "{decoder_block: qwen3, base_emb_dim: 5120, base_num_query_heads: 40, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 40, base_mlp_dim: 17408, vocab_size: 151936, "
     "mlp_activations: [silu, linear], use_qk_norm: true}"},
    {"qwen3-235b-a22b",
     "{decoder_block: qwen3_moe, base_emb_dim: 4096, base_num_query_heads: 64, "
     "base_num_kv_heads: 4, head_dim: 128, base_num_decoder_layers: 94, base_mlp_dim: 1536, "
     "vocab_size: 151936, mlp_activations: [silu, linear], use_qk_norm: true, "
     "base_moe_mlp_dim: 1536, num_experts: 128, num_experts_per_tok: 8}"},
    {"qwen3-30b-a3b",
     "{decoder_block: qwen3_moe, base_emb_dim: 2048, base_num_query_heads: 32, "
     "base_num_kv_heads: 4, head_dim: 128, base_num_decoder_layers: 48, base_mlp_dim: 768, "
     "vocab_size: 151936, mlp_activations: [silu, linear], use_qk_norm: true, "
     "base_moe_mlp_dim: 768, num_experts: 128, num_experts_per_tok: 8}"},
    {"qwen3-32b",
     "{decoder_block: qwen3, base_emb_dim: 5120, base_num_query_heads: 64, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 64, base_mlp_dim: 25600, vocab_size: 151936, "
     "mlp_activations: [silu, linear], use_qk_norm: true}"},
    {"qwen3-480b-a35b",
     "{decoder_block: qwen3_moe, base_emb_dim: 6144, base_num_query_heads: 96, "
     "base_num_kv_heads: 8, head_dim: 128, base_num_decoder_layers: 62, base_mlp_dim: 2560, "
     "vocab_size: 151936, mlp_activations: [silu, linear], base_moe_mlp_dim: 2560, "
     "num_experts: 160, num_experts_per_tok: 8}"},
    {"qwen3-4b",
     "{decoder_block: qwen3, base_emb_dim: 2560, base_num_query_heads: 32, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 36, base_mlp_dim: 9728, vocab_size: 151936, "
     "mlp_activations: [silu, linear], use_qk_norm: true, logits_via_embedding: true}"},
    {"qwen3-8b",
     "{decoder_block: qwen3, base_emb_dim: 4096, base_num_query_heads: 32, base_num_kv_heads: "
     "8, head_dim: 128, base_num_decoder_layers: 36, base_mlp_dim: 12288, vocab_size: 151936, "
     "mlp_activations: [silu, linear], use_qk_norm: true}"},
};

}  // namespace

std::string_view known_model(std::string_view name) {
  const auto row = std::ranges::find(kModels, name, &Row::name);
  return row == std::end(kModels) ? std::string_view() : row->settings;
}

std::vector<std::string_view> known_model_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kModels) names.push_back(row.name);
  return names;
}

}  // namespace spillway
