#include "model/spec/remat_policy.h"

#include <algorithm>
#include <iterator>

namespace spillway {
namespace {

constexpr std::string_view kNothing[] = {""};
constexpr std::string_view kOut[] = {"out_proj"};
constexpr std::string_view kQkvOffloaded[] = {"query_proj", "key_proj", "value_proj", "kv_proj"};
constexpr std::string_view kQkv[] = {"query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj"};
constexpr std::string_view kExceptMlp[] = {"query_proj", "key_proj", "value_proj",
                                           "kv_proj",    "qkv_proj", "out_proj"};
constexpr std::string_view kExceptMlpWithContext[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "context", "out_proj"};
constexpr std::string_view kExceptMlpInput[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                                "qkv_proj",   "out_proj", "mlpwo"};
constexpr std::string_view kMinimal[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                         "qkv_proj",   "out_proj", "mlpwi_0",    "mlpwi_1",
                                         "mlpwi",      "mlpwo"};
constexpr std::string_view kMinimalWithContext[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "out_proj",
    "mlpwi_0",    "mlpwi_1",  "mlpwi",      "mlpwo",   "context"};
constexpr std::string_view kMinimalQuantized[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj",    "out_proj",
    "mlpwi_0",    "mlpwi_1",  "mlpwi",      "mlpwo",   "quantization"};
constexpr std::string_view kMinimalAll[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                            "qkv_proj",   "out_proj", "mlpwi_0",    "mlpwi_1",
                                            "mlpwi",      "mlpwo",    "context",    "quantization"};

constexpr RematPreset kPresets[] = {
    {"full", std::span(kNothing).first(0), SaveChoice::kDevice},
    {"save_out_proj", kOut, SaveChoice::kDevice},
    {"save_qkv_proj", kQkv, SaveChoice::kDevice},
    {"save_dot_except_mlp", kExceptMlp, SaveChoice::kDevice},
    {"save_dot_with_context_except_mlp", kExceptMlpWithContext, SaveChoice::kDevice},
    {"save_dot_except_mlpwi", kExceptMlpInput, SaveChoice::kDevice},
    {"minimal", kMinimal, SaveChoice::kDevice},
    {"minimal_with_context", kMinimalWithContext, SaveChoice::kDevice},
    {"minimal_flash", kMinimalWithContext, SaveChoice::kDevice},
    {"minimal_with_quantization", kMinimalQuantized, SaveChoice::kDevice},
    {"minimal_with_context_and_quantization", kMinimalAll, SaveChoice::kDevice},
    {"qkv_proj_offloaded", kQkvOffloaded, SaveChoice::kHost},
    {"minimal_offloaded", kMinimal, SaveChoice::kHost},
};

constexpr std::string_view kAllNames[] = {"decoder_layer_input",
                                          "query_proj",
                                          "key_proj",
                                          "value_proj",
                                          "kv_proj",
                                          "qkv_proj",
                                          "context",
                                          "attention_out",
                                          "out_proj",
                                          "query_wa_proj",
                                          "kv_wa_proj",
                                          "mla_q",
                                          "mla_kv",
                                          "mlpwi",
                                          "mlpwi_0",
                                          "mlpwi_1",
                                          "mlpwo",
                                          "moe_mlpwi_0",
                                          "moe_mlpwi_1",
                                          "moe_mlpwo",
                                          "quantization"};

}  // namespace

const RematPreset* find_remat_preset(std::string_view name) {
  const auto* preset = std::ranges::find(kPresets, name, &RematPreset::name);
  return preset == std::end(kPresets) ? nullptr : preset;
}

std::span<const RematPreset> remat_presets() { return kPresets; }

void apply_preset(StepSpec& step, const RematPreset& preset) {
  step.policy = preset.name;
  step.saves = {{"decoder_layer_input", SaveChoice::kDevice}};
  for (const std::string_view name : preset.saved) step.saves[std::string(name)] = preset.where;
}

std::string remat_preset_names() {
  std::string names;
  for (const RematPreset& preset : kPresets)
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  return names;
}

std::span<const std::string_view> remat_names() { return kAllNames; }

SaveChoice choice_of(const StepSpec& step, std::string_view name) {
  const auto found = step.saves.find(name);
  return found == step.saves.end() ? SaveChoice::kRecompute : found->second;
}

}  // namespace spillway
