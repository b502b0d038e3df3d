#include "model/spec/maxtext_model.h"

#include <algorithm>

#include "model/base/spelling.h"
#include "model/spec/known_models.h"
#include "model/spec/read_maxtext.h"

namespace spillway {
namespace {

constexpr std::string_view kBlocks[] = {"default", "llama2", "mistral", "gemma",   "gemma2",
                                        "gemma3",  "gemma4", "qwen2",   "qwen3",   "qwen3_moe",
                                        "mixtral", "gpt3",   "gpt_oss", "deepseek"};

AttentionSpec read_attention(ConfigKeys& keys, std::string_view block) {
  AttentionSpec a;
  a.query_heads = keys.require_size("base_num_query_heads", "attention heads");
  a.kv_heads = keys.require_size("base_num_kv_heads", "heads of keys and values");
  if (keys.text("attention_type", "global") == "mla") {
    AttentionSpec::Latent latent;
    if (!keys.has("q_lora_rank"))
      keys.fail("q_lora_rank", "'q_lora_rank' is missing: the rank of latent queries, 0 for none");
    latent.query_rank = keys.integer("q_lora_rank", 0);
    latent.kv_rank = keys.require_size("kv_lora_rank", "the rank of latent keys and values");
    latent.content_dim = keys.require_size("qk_nope_head_dim", "a key's part without position");
    latent.position_dim = keys.require_size("qk_rope_head_dim", "a key's part with position");
    a.head_dim = latent.content_dim + latent.position_dim;
    a.value_dim = keys.require_size("v_head_dim", "a value's dimension");
    a.latent = latent;
  } else {
    a.head_dim = a.value_dim = keys.require_size("head_dim", "dimension of a head");
  }
  a.window = keys.integer("sliding_window_size", 0);
  a.qkv_bias = keys.flag("attention_bias", false);
  a.query_key_norm = keys.flag("use_qk_norm", false) || block == "gemma3" || block == "gemma4";
  a.sinks = keys.flag("attention_sink", false);
  a.fused_projection = keys.flag("fused_qkv", false);
  return a;
}

MoeSpec read_moe(ConfigKeys& keys) {
  MoeSpec moe;
  moe.experts = keys.require_size("num_experts", "experts");
  moe.per_token = keys.require_size("num_experts_per_tok", "experts a token uses");
  moe.width = keys.require_size("base_moe_mlp_dim", "an expert's hidden dimension");
  moe.shared = keys.integer("shared_experts", 0);
  moe.shared_width = moe.shared * moe.width;
  moe.gate_bias = keys.flag("routed_bias", false);
  return moe;
}

/// gemma2 counts a pair of layers, one with a window, as one; others have their own rhythm.
void set_windows(std::string_view block, AttentionSpec& attention) {
  if (block == "gemma2" || block == "gpt_oss") attention.window_period = 2;
  if (block == "gemma3" || block == "gemma4") attention.window_period = 6;
  if (attention.window == 0) attention.window_period = 1;
}

void read_deepseek(ConfigKeys& keys, const AttentionSpec& attention, std::int64_t layers,
                   ModelSpec& model) {
  if (!keys.has("first_num_dense_layers"))
    keys.fail("first_num_dense_layers",
              "'first_num_dense_layers' is missing: layers in front of those with experts");
  const std::int64_t dense = keys.integer("first_num_dense_layers", 0);
  const std::int64_t width = keys.require_size("base_mlp_dim", "a dense layer's hidden dimension");
  const MoeSpec moe = read_moe(keys);
  if (dense < 0 || dense >= layers) {
    keys.fail("first_num_dense_layers", "'first_num_dense_layers' must leave layers for experts");
    return;
  }
  if (dense > 0) model.groups.push_back({"dense_layers", dense, attention, width, {}});
  model.groups.push_back({"moe_layers", layers - dense, attention, 0, moe});
}

/// Local layers, and global ones with heads of their own.
void read_gemma4(ConfigKeys& keys, AttentionSpec attention, std::int64_t layers, std::int64_t width,
                 ModelSpec& model) {
  const std::int64_t global = layers / attention.window_period;
  AttentionSpec wide = attention;
  wide.window = 0;
  wide.window_period = attention.window_period = 1;
  wide.head_dim = wide.value_dim =
      keys.require_size("global_head_dim", "a global head's dimension");
  wide.kv_heads = keys.require_size("global_num_kv_heads", "global heads of keys and values");
  wide.keys_are_values = keys.flag("share_kv_projections", false);
  model.groups.push_back({"local_layers", layers - global, attention, width, {}});
  model.groups.push_back({"global_layers", global, wide, width, {}});
}

void read_groups(ConfigKeys& keys, ModelSpec& model) {
  AttentionSpec attention = read_attention(keys, model.block);
  set_windows(model.block, attention);
  std::int64_t layers = keys.require_size("base_num_decoder_layers", "layers");
  if (model.block == "gemma2") layers *= 2;
  if (model.block == "gpt3" || model.block == "gpt_oss") attention.out_bias = true;
  if (model.block == "gpt3") attention.qkv_bias = true;
  if (model.block == "deepseek") {
    read_deepseek(keys, attention, layers, model);
    return;
  }
  const bool experts = keys.integer("num_experts", 1) > 1;
  if (experts) {
    MoeSpec moe = read_moe(keys);
    moe.expert_bias = model.mlp_bias;
    moe.gate_bias_is_trained = model.block == "gpt_oss";
    keys.integer("base_mlp_dim", 0);
    model.groups.push_back({"layers", layers, attention, 0, moe});
    return;
  }
  const std::int64_t width = keys.require_size("base_mlp_dim", "the hidden dimension of a layer");
  if (model.block == "gemma4")
    read_gemma4(keys, attention, layers, width, model);
  else
    model.groups.push_back({"layers", layers, attention, width, {}});
}

/// "[silu, linear]": two inputs where there are two names.
bool is_gated(ConfigKeys& keys) {
  const auto found = keys.find("mlp_activations");
  if (!found) {
    keys.fail("mlp_activations",
              "'mlp_activations' is missing: whether the activation has one input or two",
              "for example mlp_activations: [silu, linear]");
    return true;
  }
  if (found->value->kind != YamlNode::Kind::kSequence || found->value->items.empty()) {
    keys.fail("mlp_activations", "'mlp_activations' must be a list",
              "for example mlp_activations: [silu, linear]");
    return true;
  }
  return found->value->items.size() > 1;
}

}  // namespace

ModelSpec read_model(ConfigKeys& keys) {
  ModelSpec model;
  model.name = keys.text("model_name", "default");
  model.block = keys.text("decoder_block", "");
  if (model.block.empty())
    keys.fail("decoder_block", "'decoder_block' is missing: how a layer is made",
              "give it, or a 'model_name' that Spillway knows");
  else if (std::ranges::find(kBlocks, model.block) == std::end(kBlocks))
    keys.fail("decoder_block",
              "'decoder_block' " + spillway::quoted(model.block) + " is not modelled");
  model.embed = keys.require_size("base_emb_dim", "the model's dimension");
  model.vocabulary = keys.require_size("vocab_size", "tokens of the vocabulary");
  model.tied_head = keys.flag("logits_via_embedding", false);
  model.gated = is_gated(keys);
  model.trained_positions = std::max<std::int64_t>(0, keys.integer("trainable_position_size", -1));
  model.norms_per_layer = 2 + (keys.flag("use_post_attn_norm", false) ? 1 : 0) +
                          (keys.flag("use_post_ffw_norm", false) ? 1 : 0);
  model.mlp_bias = keys.flag("mlp_bias", false) || model.block == "gpt3";
  model.norm_bias = model.block == "gpt3";
  read_groups(keys, model);
  return model;
}

Result<YamlDocument> known_model_document(const std::string& name) {
  const std::string_view settings = known_model(name);
  if (settings.empty()) {
    std::vector<std::string> names;
    for (const std::string_view known : known_model_names()) names.emplace_back(known);
    const std::string_view near = nearest_name(name, names);
    std::string advice;
    for (const std::string& known : names) advice += (advice.empty() ? "known are " : ", ") + known;
    if (!near.empty()) advice = "did you mean " + std::string(near) + "?";
    return usage_error("there is no model called " + spillway::quoted(name), advice);
  }
  return parse_yaml(std::string(settings), name);
}

Result<ModelSpec> find_model(const std::string& name) {
  const Result<YamlDocument> document = known_model_document(name);
  if (!document.ok()) return document.error();
  ConfigKeys keys(*document, nullptr);
  ModelSpec model = read_model(keys);
  model.name = name;
  if (keys.problem()) return *keys.problem();
  return model;
}

}  // namespace spillway
