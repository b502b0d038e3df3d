#include "model/spec/read_maxtext.h"

#include <doctest/doctest.h>

#include <string>

#include "model/spec/known_models.h"
#include "model/spec/weights.h"

namespace spillway {
namespace {

Result<StepSpec> read(const std::string& text, std::int64_t devices = 8) {
  auto document = parse_yaml(text, "run.yml");
  REQUIRE(document.ok());
  return read_maxtext(*document, devices);
}

const std::string kRun = "per_device_batch_size: 1\nmax_target_length: 4096\n";

TEST_CASE("what is wrong is named, with what would be right") {
  struct Row {
    std::string text;
    const char* message;
  };
  const Row rows[] = {
      {"model_name: llama3.1-9b\n" + kRun,
       "run.yml:1:1: error: there is no model called 'llama3.1-9b'\n"
       "   1 | model_name: llama3.1-9b\n     | ^ did you mean llama3.1-8b?"},
      {"decoder_block: llama2\n" + kRun,
       "run.yml: error: 'base_emb_dim' is missing: the model's dimension\n  give it, or a "
       "'model_name' that Spillway knows"},
      {"decoder_block: llama2\nbase_emb_dim: 64\nvocab_size: 256\nmlp_activations: [silu, "
       "linear]\nbase_num_query_heads: 4\nbase_num_kv_heads: 2\n" +
           kRun,
       "run.yml: error: 'head_dim' is missing: dimension of a head\n  give it, or a 'model_name' "
       "that Spillway knows"},
      {"model_name: llama3.1-8b\nmax_target_length: 4096\n",
       "run.yml: error: 'per_device_batch_size' is missing: sequences a device"},
      {"model_name: llama3.1-8b\nremat_policy: minimum\n" + kRun,
       "run.yml:2:1: error: 'remat_policy' 'minimum' is not known\n"
       "   2 | remat_policy: minimum\n     | ^ known are custom, full, save_out_proj, "
       "save_qkv_proj, save_dot_except_mlp, save_dot_with_context_except_mlp, "
       "save_dot_except_mlpwi, minimal, minimal_with_context, minimal_flash, "
       "minimal_with_quantization, minimal_with_context_and_quantization, qkv_proj_offloaded, "
       "minimal_offloaded"},
      {"model_name: llama3.1-8b\nici_tensor_parallelism: 3\n" + kRun,
       "run.yml: error: the mesh has 3 devices, and 8 are asked for\n  the product of all "
       "ici_*_parallelism and dcn_*_parallelism is the number of devices"},
      {"model_name: mixtral-8x7b\nsparse_matmul: false\n" + kRun,
       "run.yml: error: 'capacity_factor' is missing: without sparse_matmul it says how many "
       "places an expert has\n  for example capacity_factor: 1.0"},
      {"model_name: llama3.1-8b\nscan_layers: false\n" + kRun,
       "run.yml:2:1: error: layers that are not scanned are not modelled from a configuration\n"
       "   2 | scan_layers: false\n     | ^ compile ahead of time and give the dump, or "
       "scan_layers: true"},
      {"model_name: llama3.1-8b\nweight_dtype: half\n" + kRun,
       "run.yml:2:1: error: 'weight_dtype' is no type that is read: 'half'\n"
       "   2 | weight_dtype: half\n     | ^ for example bfloat16 or float32"},
      {"model_name: qwen2.5-7b\nici_tensor_parallelism: 8\n" + kRun,
       "error: dimension 4 of decoder/layers/self_attention/key/bias cannot be split into 8\n"
       "  choose another mesh"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto step = read(row.text);
    REQUIRE_FALSE(step.ok());
    CHECK(to_text(step.error()) == row.message);
  }
}

TEST_CASE("the mesh: what is left goes to fsdp, ICI and DCN are multiplied") {
  const auto step = read(
      "model_name: llama3.1-8b\nici_tensor_parallelism: 2\n"
      "dcn_data_parallelism: 2\nici_fsdp_parallelism: -1\n" +
          kRun,
      32);
  REQUIRE(step.ok());
  CHECK(step->mesh[MeshAxis::kTensor] == 2);
  CHECK(step->mesh[MeshAxis::kData] == 2);
  CHECK(step->mesh[MeshAxis::kFsdp] == 8);
  CHECK(step->local_batch() == 2);
}

TEST_CASE("settings that are not read are told") {
  const auto step = read("model_name: llama3.1-8b\nrun_name: mine\ndataset_path: gs\n" + kRun);
  REQUIRE(step.ok());
  REQUIRE_FALSE(step->assumptions.empty());
  CHECK(step->assumptions.back() ==
        "settings that were not read, as they change neither sizes nor work: run_name, "
        "dataset_path");
}

TEST_CASE("every known model can be read") {
  for (const std::string_view name : known_model_names()) {
    CAPTURE(name);
    const auto model = find_model(std::string(name));
    REQUIRE(model.ok());
    CHECK(count_parameters(*model) > 0);
    CHECK(count_active_parameters(*model) <= count_parameters(*model));
  }
}

}  // namespace
}  // namespace spillway
