#include "model/spec/read_hf_config.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/base/read_file.h"

namespace spillway {
namespace {

using nlohmann::json;
using Aliases = std::initializer_list<const char*>;

/// Keys of one model, the nested text model's in front of the outer ones.
class HfKeys {
 public:
  HfKeys(const json& outer, std::string path) : path_(std::move(path)) {
    for (const char* nested : {"text_config", "language_config", "llm_config", "thinker_config"})
      if (outer.contains(nested) && outer[nested].is_object()) maps_.push_back(&outer[nested]);
    // One level further down: thinker_config.text_config.
    if (!maps_.empty() && maps_.back()->contains("text_config") &&
        (*maps_.back())["text_config"].is_object())
      maps_.insert(maps_.begin(), &(*maps_.back())["text_config"]);
    maps_.push_back(&outer);
  }

  /// Null where no alias has a value.
  const json* find(Aliases aliases) const {
    for (const json* map : maps_)
      for (const char* key : aliases)
        if (const auto found = map->find(key); found != map->end() && !found->is_null())
          return &*found;
    return nullptr;
  }

  std::optional<std::int64_t> size(Aliases aliases) {
    const json* value = find(aliases);
    if (!value) return std::nullopt;
    if (value->is_number_integer() && value->get<std::int64_t>() >= 0)
      return value->get<std::int64_t>();
    if (value->is_array() && !value->empty() && (*value)[0].is_number_integer()) {
      // A number a layer: only where all are alike is it one.
      if (std::ranges::all_of(*value, [&](const json& x) { return x == (*value)[0]; }))
        return (*value)[0].get<std::int64_t>();
      fail("'" + std::string(*aliases.begin()) +
           "' differs from layer to layer, which is not modelled");
      return std::nullopt;
    }
    fail("'" + std::string(*aliases.begin()) + "' must be a whole number");
    return std::nullopt;
  }

  std::int64_t require(Aliases aliases, const std::string& what) {
    const auto value = size(aliases);
    if (value && *value > 0) return *value;
    std::string keys;
    for (const char* key : aliases) keys += (keys.empty() ? "'" : ", '") + std::string(key) + "'";
    fail(std::string(value ? "must be at least 1: " : "is missing: ") + keys + ", " + what);
    return 1;
  }

  bool flag(Aliases aliases, bool otherwise) const {
    const json* value = find(aliases);
    return value && value->is_boolean() ? value->get<bool>() : otherwise;
  }
  std::string text(Aliases aliases) const {
    const json* value = find(aliases);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }

  void fail(std::string text) {
    if (!problem_) problem_ = error_in_file(path_, std::move(text));
  }
  const std::optional<Error>& problem() const { return problem_; }

 private:
  std::string path_;
  std::vector<const json*> maps_;
  std::optional<Error> problem_;
};

/// Families whose layers are the ones that are modelled, by model_type.
struct Family {
  const char* type;
  const char* block;
  bool query_key_norm;
  bool gated;
  std::int64_t norms;
  std::int64_t window_period;  ///< 0: no windows, or all layers
  bool ties_by_default;
};
constexpr Family kFamilies[] = {
    {"llama", "llama2", false, true, 2, 0, false},
    {"mistral", "mistral", false, true, 2, 0, false},
    {"mixtral", "mixtral", false, true, 2, 0, false},
    {"qwen2", "qwen2", false, true, 2, 0, false},
    {"qwen3", "qwen3", true, true, 2, 0, false},
    {"qwen3_moe", "qwen3_moe", true, true, 2, 0, false},
    {"gemma", "gemma", false, true, 2, 0, true},
    {"gemma2", "gemma2", false, true, 4, 2, true},
    {"gemma3", "gemma3", true, true, 4, 6, true},
    {"gemma3_text", "gemma3", true, true, 4, 6, true},
    {"gpt_oss", "gpt_oss", false, true, 2, 2, false},
    {"deepseek_v2", "deepseek", false, true, 2, 0, false},
    {"deepseek_v3", "deepseek", false, true, 2, 0, false},
    {"kimi_k2", "deepseek", false, true, 2, 0, false},
};

AttentionSpec read_attention(HfKeys& keys, const Family& family, std::int64_t hidden) {
  AttentionSpec a;
  a.query_heads = keys.require({"num_attention_heads", "n_head", "num_heads"}, "attention heads");
  a.kv_heads =
      keys.size({"num_key_value_heads", "num_kv_heads", "n_head_kv"}).value_or(a.query_heads);
  if (keys.find({"kv_lora_rank"})) {
    AttentionSpec::Latent latent;
    latent.query_rank = keys.size({"q_lora_rank"}).value_or(0);  // null: queries in one step
    latent.kv_rank = keys.require({"kv_lora_rank"}, "the rank of latent keys and values");
    latent.content_dim = keys.require({"qk_nope_head_dim"}, "a key's part without position");
    latent.position_dim = keys.require({"qk_rope_head_dim"}, "a key's part with position");
    a.head_dim = latent.content_dim + latent.position_dim;
    a.value_dim = keys.require({"v_head_dim"}, "a value's dimension");
    a.latent = latent;
  } else {
    const auto head_dim = keys.size({"head_dim", "attention_head_dim", "d_kv"});
    if (!head_dim && hidden % a.query_heads != 0)
      keys.fail("'head_dim' is missing, and the heads do not divide 'hidden_size'");
    a.head_dim = a.value_dim = head_dim.value_or(hidden / a.query_heads);
  }
  a.query_key_norm = family.query_key_norm;
  const std::string block = family.block;
  a.qkv_bias = keys.flag({"attention_bias", "qkv_bias"}, block == "qwen2");
  a.out_bias = block == "gpt_oss";
  a.sinks = block == "gpt_oss";
  if (keys.flag({"use_sliding_window"}, true)) a.window = keys.size({"sliding_window"}).value_or(0);
  if (a.window > 0)
    a.window_period = keys.size({"sliding_window_pattern"})
                          .value_or(std::max<std::int64_t>(1, family.window_period));
  return a;
}

void read_experts(HfKeys& keys, const AttentionSpec& attention, std::int64_t layers,
                  ModelSpec& model) {
  MoeSpec moe;
  moe.experts = keys.require({"n_routed_experts", "num_local_experts", "num_experts"}, "experts");
  moe.per_token =
      keys.require({"num_experts_per_tok", "experts_per_token", "top_k"}, "experts a token uses");
  moe.width = model.block == "mixtral" || model.block == "gpt_oss"
                  ? keys.require({"intermediate_size"}, "an expert's hidden dimension")
                  : keys.require({"moe_intermediate_size"}, "an expert's hidden dimension");
  moe.shared = keys.size({"n_shared_experts"}).value_or(0);
  moe.shared_width = moe.shared * moe.width;
  moe.gate_bias = keys.text({"topk_method"}) == "noaux_tc" || model.block == "gpt_oss";
  moe.gate_bias_is_trained = moe.expert_bias = model.block == "gpt_oss";
  const std::int64_t dense = keys.size({"first_k_dense_replace"}).value_or(0);
  if (keys.size({"decoder_sparse_step", "moe_layer_freq"}).value_or(1) > 1)
    keys.fail(
        "experts in every other layer ('decoder_sparse_step', 'moe_layer_freq') are not modelled");
  if (dense >= layers) keys.fail("'first_k_dense_replace' must leave layers for experts");
  if (dense > 0)
    model.groups.push_back({"dense_layers",
                            dense,
                            attention,
                            keys.require({"intermediate_size"}, "a dense layer's hidden dimension"),
                            {}});
  model.groups.push_back({dense > 0 ? "moe_layers" : "layers", layers - dense, attention, 0, moe});
}

}  // namespace

Result<ModelSpec> parse_hf_config(const std::string& text, const std::string& path) {
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object())
    return error_in_file(path, "is no JSON object",
                         "a config.json of Hugging Face begins with '{'");
  HfKeys keys(root, path);
  const std::string type = keys.text({"model_type"});
  const auto family =
      std::ranges::find_if(kFamilies, [&type](const Family& f) { return type == f.type; });
  if (type.empty()) return error_in_file(path, "is missing: 'model_type', how a layer is made");
  if (family == std::end(kFamilies))
    return error_in_file(path, "'model_type' " + spillway::quoted(type) + " is not modelled");
  ModelSpec model;
  model.name = keys.text({"_name_or_path"});
  if (model.name.empty()) model.name = type;
  model.block = family->block;
  model.gated = family->gated;
  model.norms_per_layer = family->norms;
  model.embed = keys.require({"hidden_size", "n_embd", "d_model"}, "the model's dimension");
  model.vocabulary = keys.require({"vocab_size", "padded_vocab_size"}, "tokens of the vocabulary");
  model.tied_head = keys.flag({"tie_word_embeddings"}, family->ties_by_default);
  model.mlp_bias = keys.flag({"mlp_bias"}, false);
  const std::int64_t layers =
      keys.require({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, "layers");
  const AttentionSpec attention = read_attention(keys, *family, model.embed);
  // Experts of which the number is missing are an error of their own.
  if (keys.find({"n_routed_experts", "num_local_experts", "num_experts", "num_experts_per_tok",
                 "experts_per_token", "moe_intermediate_size"}))
    read_experts(keys, attention, layers, model);
  else
    model.groups.push_back(
        {"layers",
         layers,
         attention,
         keys.require({"intermediate_size", "n_inner", "ffn_dim"}, "a layer's hidden dimension"),
         {}});
  if (keys.problem()) return *keys.problem();
  return model;
}

Result<ModelSpec> read_hf_config(const std::string& path) {
  const auto text = read_file(path);
  if (!text.ok()) return text.error();
  return parse_hf_config(**text, path);
}

}  // namespace spillway
