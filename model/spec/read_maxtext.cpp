#include "model/spec/read_maxtext.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/spec/config_keys.h"
#include "model/spec/maxtext_model.h"
#include "model/spec/remat_policy.h"
#include "model/spec/weights.h"

namespace spillway {
namespace {

/// "bfloat16", as MaxText has it.
std::optional<ElementType> find_type(std::string_view name) {
  if (name == "bfloat16") return ElementType::kBF16;
  if (name == "float32") return ElementType::kF32;
  if (name == "float16") return ElementType::kF16;
  if (name == "float8_e4m3fn") return ElementType::kF8E4M3FN;
  return std::nullopt;
}

ElementType read_type(ConfigKeys& keys, std::string_view key, ElementType otherwise) {
  const std::string name = keys.text(key, "");
  if (name.empty()) return otherwise;
  if (const auto type = find_type(name)) return *type;
  keys.fail(key, "'" + std::string(key) + "' is no type that is read: " + spillway::quoted(name),
            "for example bfloat16 or float32");
  return otherwise;
}

Precision read_precision(ConfigKeys& keys) {
  Precision precision;
  precision.activations = read_type(keys, "dtype", ElementType::kBF16);
  precision.weights = read_type(keys, "weight_dtype", ElementType::kF32);
  precision.gradients = read_type(keys, "grad_dtype", ElementType::kF32);
  precision.first_moment = read_type(keys, "mu_dtype", precision.weights);
  precision.second_moment = precision.weights;  // MaxText and Optax have no setting of its own
  const std::string name = keys.text("quantization", "");
  if (name.empty()) return precision;
  if (name.find("nvfp4") != std::string::npos)
    precision.quantization = Quantization::kNvfp4;
  else if (name.find("mxfp8") != std::string::npos)
    precision.quantization = Quantization::kMxfp8;
  else if (name.find("fp8") != std::string::npos)
    precision.quantization = Quantization::kFp8;
  else
    keys.fail("quantization", "'quantization' " + spillway::quoted(name) + " is not modelled",
              "modelled are fp8, nanoo_fp8, te_fp8_*, te_mxfp8 and te_nvfp4");
  return precision;
}

/// One axis over ICI and DCN; empty where one of them is -1.
std::optional<std::int64_t> read_axis(ConfigKeys& keys, const std::string& name,
                                      std::int64_t otherwise_ici, std::int64_t otherwise_dcn) {
  std::int64_t product = 1;
  bool open = false;
  for (const auto& [part, otherwise] :
       {std::pair("ici_", otherwise_ici), std::pair("dcn_", otherwise_dcn)}) {
    const std::string key = part + name + "_parallelism";
    const std::int64_t size = keys.integer(key, otherwise);
    if (size == -1)
      open = true;
    else if (size < 1)
      keys.fail(key, "'" + key + "' must be at least 1, or -1 for what is left");
    else
      product *= size;
  }
  return open ? std::nullopt : std::optional(product);
}

Mesh read_mesh(ConfigKeys& keys, std::int64_t devices) {
  Mesh mesh;
  std::optional<MeshAxis> open;
  for (std::size_t i = 0; i < kMeshAxes; ++i) {
    const auto axis = static_cast<MeshAxis>(i);
    const std::string name(name_of(axis));
    const bool slices = keys.has("dcn_data_parallelism") || keys.has("num_slices");
    // base.yml leaves data over DCN and fsdp over ICI open; one slice is all there is by default.
    const auto size = read_axis(keys, name, axis == MeshAxis::kFsdp ? -1 : 1,
                                axis == MeshAxis::kData && slices ? -1 : 1);
    if (size)
      mesh[axis] = *size;
    else if (!open || axis == MeshAxis::kFsdp)
      open = axis;  // MaxText fills ICI and DCN each for itself; what is left goes to fsdp here
  }
  for (const char* other :
       {"sequence", "autoregressive", "diloco", "context_autoregressive", "context_usp_ulysses"})
    if (const auto size = read_axis(keys, other, 1, 1); size.value_or(1) != 1)
      keys.fail("ici_" + std::string(other) + "_parallelism",
                "'" + std::string(other) + "' parallelism is not modelled");
  const std::int64_t given = mesh.devices();
  if (open && devices % given == 0) mesh[*open] = devices / given;
  if (mesh.devices() != devices)
    keys.fail(
        "ici_fsdp_parallelism",
        "the mesh has " + std::to_string(mesh.devices()) + " devices, and " +
            std::to_string(devices) + " are asked for",
        "the product of all ici_*_parallelism and dcn_*_parallelism is the number of devices");
  return mesh;
}

std::optional<SaveChoice> parse_choice(std::string_view word) {
  if (word == "remat") return SaveChoice::kRecompute;
  if (word == "device") return SaveChoice::kDevice;
  if (word == "offload") return SaveChoice::kHost;
  return std::nullopt;
}

void read_policy(ConfigKeys& keys, StepSpec& step) {
  step.policy = keys.text("remat_policy", "full");
  step.saves["decoder_layer_input"] = SaveChoice::kDevice;  // where nobody says otherwise
  const RematPreset* preset = find_remat_preset(step.policy);
  if (!preset && step.policy != "custom") {
    keys.fail("remat_policy", "'remat_policy' " + spillway::quoted(step.policy) + " is not known",
              "known are custom, " + remat_preset_names());
    return;
  }
  if (preset) apply_preset(step, *preset);
  for (const std::string_view name : remat_names()) {
    if (name == "quantization") continue;  // in MaxText that key is the quantiser
    const std::string word = keys.text(name, "");
    if (word.empty()) continue;
    const auto choice = parse_choice(word);
    if (!choice)
      keys.fail(name, "'" + std::string(name) + "' must be remat, device or offload");
    else if (step.policy == "custom")
      step.saves[std::string(name)] = *choice;
  }
  std::erase_if(step.saves, [](const auto& save) { return save.second == SaveChoice::kRecompute; });
}

void read_attention(ConfigKeys& keys, StepSpec& step) {
  const std::string kernel = keys.text("attention", "autoselected");
  if (kernel == "dot_product")
    step.attention = AttentionKernel::kPlain;
  else if (kernel == "flash" || kernel == "autoselected" || kernel.starts_with("cudnn_flash"))
    step.attention = AttentionKernel::kFlash;
  else
    keys.fail("attention", "'attention' " + spillway::quoted(kernel) + " is not modelled",
              "modelled are dot_product, flash, cudnn_flash_jax and cudnn_flash_te");
  if (kernel == "autoselected")
    step.assumptions.push_back("attention: autoselected is taken for a flash kernel");
}

void read_dispatch(ConfigKeys& keys, StepSpec& step) {
  const bool sparse = keys.flag("sparse_matmul", true);
  keys.flag("megablox", true);
  step.capacity_factor = keys.number("capacity_factor", -1);
  step.ragged_factor = keys.number("ragged_buffer_factor", -1);
  if (!sparse && step.capacity_factor > 0)
    step.dispatch = Dispatch::kCapacity;
  else if (step.ragged_factor > 0)
    step.dispatch = Dispatch::kRagged;
  else
    step.dispatch = Dispatch::kDropless;
  const bool has_experts = std::ranges::any_of(
      step.model.groups, [](const LayerStack& group) { return group.moe.has_value(); });
  if (has_experts && !sparse && step.capacity_factor <= 0)
    keys.fail("capacity_factor",
              "'capacity_factor' is missing: without sparse_matmul it says how "
              "many places an expert has",
              "for example capacity_factor: 1.0");
}

void read_optimizer(ConfigKeys& keys, StepSpec& step) {
  const std::string name = keys.text("opt_type", "adamw");
  if (name == "adamw" || name == "adam_pax" || name == "adam")
    step.optimizer = Optimizer::kAdamW;
  else if (name == "adafactor")
    step.optimizer = Optimizer::kAdafactor;
  else if (name == "muon")
    step.optimizer = Optimizer::kMuon;
  else if (name == "sgd")
    step.optimizer = Optimizer::kSgd;
  else
    keys.fail("opt_type", "'opt_type' " + spillway::quoted(name) + " is not modelled",
              "modelled are adamw, adam_pax, adafactor, muon and sgd");
  step.optimizer_on_host = keys.flag("optimizer_memory_host_offload", false);
  step.params_on_host = keys.flag("parameter_memory_host_offload", false);
  step.clips_gradients = keys.number("gradient_clipping_threshold", 1) > 0;
}

void read_batch(ConfigKeys& keys, StepSpec& step) {
  if (!keys.has("per_device_batch_size"))
    keys.fail("per_device_batch_size", "'per_device_batch_size' is missing: sequences a device");
  if (!keys.has("max_target_length"))
    keys.fail("max_target_length", "'max_target_length' is missing: tokens of a sequence");
  step.batch_per_device = keys.number("per_device_batch_size", 1);
  step.sequence = keys.integer("max_target_length", 1);
  step.accumulation = keys.integer("gradient_accumulation_steps", 1);
  if (step.batch_per_device <= 0)
    keys.fail("per_device_batch_size", "'per_device_batch_size' must be more than nothing");
  if (step.sequence < 1) keys.fail("max_target_length", "'max_target_length' must be at least 1");
  if (step.accumulation < 1)
    keys.fail("gradient_accumulation_steps", "'gradient_accumulation_steps' must be at least 1");
  if (keys.problem()) return;
  const double sequences = step.batch_per_device * static_cast<double>(step.mesh.devices()) /
                           static_cast<double>(step.mesh.batch_shares());
  if (sequences < 1 || std::abs(sequences - std::round(sequences)) > 1e-6)
    keys.fail("per_device_batch_size",
              "the batch comes to " + fmt::format("{:g}", sequences) + " sequences on a device",
              "it has to be a whole number: batch x devices / (data x fsdp x expert)");
  if (step.sequence % step.mesh[MeshAxis::kContext] != 0)
    keys.fail("max_target_length", "the sequence cannot be split over the context axis");
}

void read_pipeline(ConfigKeys& keys, StepSpec& step) {
  const std::int64_t stages = step.mesh[MeshAxis::kStage];
  const std::int64_t layers_per_stage = keys.integer("num_layers_per_pipeline_stage", 1);
  const std::int64_t repeats = keys.integer("num_pipeline_repeats", -1);
  step.pipeline_microbatches = keys.integer("num_pipeline_microbatches", -1);
  if (stages == 1) return;
  if (step.model.layers() % stages != 0)
    keys.fail("ici_pipeline_parallelism", std::to_string(step.model.layers()) +
                                              " layers cannot be split into " +
                                              std::to_string(stages) + " stages");
  step.pipeline_repeats =
      repeats > 0 ? repeats
                  : step.model.layers() / (stages * std::max<std::int64_t>(1, layers_per_stage));
  if (step.pipeline_microbatches < 0) step.pipeline_microbatches = stages;
}

/// Settings that make another program of it than is made here.
void refuse_others(ConfigKeys& keys) {
  const auto refuse = [&keys](std::string_view key, bool refused) {
    if (refused) keys.fail(key, "'" + std::string(key) + "' is not modelled");
  };
  refuse("mtp_num_layers", keys.integer("mtp_num_layers", 0) != 0);
  refuse("use_multimodal", keys.flag("use_multimodal", false));
  refuse("use_audio", keys.flag("use_audio", false));
  refuse("global_parameter_scale", keys.integer("global_parameter_scale", 1) != 1);
  refuse("fused_mlp", keys.flag("fused_mlp", false));
  refuse("lora_rank", keys.integer("lora_rank", 0) != 0);
  if (keys.integer("param_scan_axis", 1) != 1)
    keys.fail("param_scan_axis", "only 'param_scan_axis' 1 is modelled");
  if (!keys.flag("scan_layers", true))
    keys.fail("scan_layers", "layers that are not scanned are not modelled from a configuration",
              "compile ahead of time and give the dump, or scan_layers: true");
}

/// Everything but the model.
Result<StepSpec> read_with(ConfigKeys& keys, ModelSpec model, std::int64_t devices) {
  StepSpec step;
  step.model = std::move(model);
  refuse_others(keys);
  step.mesh = read_mesh(keys, devices);
  step.precision = read_precision(keys);
  read_batch(keys, step);
  read_policy(keys, step);
  read_attention(keys, step);
  read_dispatch(keys, step);
  read_optimizer(keys, step);
  read_pipeline(keys, step);
  step.embeds_by_product = keys.flag("use_iota_embed", false);
  step.vocabulary_tiles = keys.integer("num_vocab_tiling", 1);
  if (step.vocabulary_tiles < 1)
    keys.fail("num_vocab_tiling", "'num_vocab_tiling' must be at least 1");
  if (keys.problem()) return *keys.problem();
  // That every array can be split is found here, and not in the middle of making a program.
  if (const auto state = count_state(step); !state.ok()) return state.error();
  const std::vector<std::string> unread = keys.unread();
  if (!unread.empty()) {
    std::string list;
    for (const std::string& key : unread) list += (list.empty() ? "" : ", ") + key;
    step.assumptions.push_back(
        "settings that were not read, as they change neither sizes nor work: " + list);
  }
  return step;
}

}  // namespace

Result<StepSpec> read_maxtext(const YamlDocument& document, std::int64_t devices) {
  if (document.root.kind != YamlNode::Kind::kMapping)
    return error_in_file(document.path, "is no mapping of MaxText's keys",
                         "for example model_name: llama3.1-8b");
  std::optional<YamlDocument> model;
  if (const YamlNode::Entry* name = find_entry(document.root, "model_name");
      name && name->value.scalar != "default") {
    Result<YamlDocument> known = known_model_document(name->value.scalar);
    if (!known.ok()) {
      Error error = known.error();
      error.where = SourceRef{document.path, name->key_at.line, name->key_at.column};
      error.excerpt = excerpt_of(document.text, name->key_at);
      return error;
    }
    model = std::move(known).value();
  }
  ConfigKeys keys(document, model ? &*model : nullptr);
  ModelSpec dimensions = read_model(keys);
  return read_with(keys, std::move(dimensions), devices);
}

Result<StepSpec> read_run_settings(const std::string& path, ModelSpec model, std::int64_t devices) {
  const Result<YamlDocument> document = read_yaml(path);
  if (!document.ok()) return document.error();
  return read_run_settings(*document, std::move(model), devices);
}

Result<StepSpec> read_run_settings(const YamlDocument& document, ModelSpec model,
                                   std::int64_t devices) {
  if (document.root.kind != YamlNode::Kind::kMapping)
    return error_in_file(document.path, "is no mapping of MaxText's keys",
                         "for example per_device_batch_size: 2");
  ConfigKeys keys(document, nullptr);
  for (const char* key : {"model_name", "base_emb_dim", "base_num_decoder_layers", "base_mlp_dim",
                          "base_num_query_heads", "base_num_kv_heads", "head_dim", "vocab_size"})
    if (keys.has(key))
      keys.fail(key, "'" + std::string(key) + "' is the model's, which comes from its config.json");
  return read_with(keys, std::move(model), devices);
}

Result<StepSpec> read_maxtext(const std::string& path, std::int64_t devices) {
  const Result<YamlDocument> document = read_yaml(path);
  if (!document.ok()) return document.error();
  return read_maxtext(*document, devices);
}

}  // namespace spillway
