#include "model/spec/saved_tensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "model/spec/remat_policy.h"
#include "tests/support/spec_step.h"

namespace spillway {
namespace {

using testing::step_of;

const char* const k405b =
    "{model_name: llama3.1-405b, per_device_batch_size: 2, max_target_length: 8192}";
const char* const kDeepSeek =
    "{model_name: deepseek3-671b, per_device_batch_size: 8, max_target_length: 4096, "
    "ici_fsdp_parallelism: 16, ici_expert_parallelism: 8}";

/// Bytes a layer of the first tensor of this name in a group.
std::int64_t bytes_of(const StepSpec& step, int group, const std::string& name,
                      SavedTensorOptions options = {}) {
  for (const SavedTensor& tensor : list_saved_tensors(step, options))
    if (tensor.group == group && std::ranges::find(tensor.names, name) != tensor.names.end())
      return tensor.bytes_per_layer().value();
  return -1;
}

// A layer's bytes on one device: batch x sequence x width, two bytes each.
TEST_CASE("named values have the bytes MaxText gives them") {
  const StepSpec llama = step_of(k405b, 128);
  const std::int64_t t = 16384;
  const std::pair<const char*, std::int64_t> dense[] = {{"decoder_layer_input", 2 * t * 16384},
                                                        {"query_proj", 2 * t * 128 * 128},
                                                        {"key_proj", 2 * t * 8 * 128},
                                                        {"value_proj", 2 * t * 8 * 128},
                                                        {"context", 536'870'912},
                                                        {"attention_out", 536'870'912},
                                                        {"out_proj", 536'870'912},
                                                        {"mlpwi_0", 1'744'830'464},
                                                        {"mlpwi_1", 1'744'830'464},
                                                        {"mlpwo", 536'870'912}};
  for (const auto& [name, bytes] : dense) {
    CAPTURE(name);
    CHECK(bytes_of(llama, 0, name) == bytes);
  }
  const StepSpec deepseek = step_of(kDeepSeek, 128);
  const std::pair<const char*, std::int64_t> experts[] = {
      {"decoder_layer_input", 469'762'048}, {"query_proj", 1'610'612'736},
      {"key_proj", 1'610'612'736},          {"value_proj", 1'073'741'824},
      {"query_wa_proj", 100'663'296},       {"mla_q", 100'663'296},
      {"kv_wa_proj", 37'748'736},           {"mla_kv", 33'554'432},
      {"context", 1'073'741'824},           {"out_proj", 469'762'048},
      {"moe_mlpwi_0", 1'073'741'824},       {"moe_mlpwi_1", 1'073'741'824},
      {"moe_mlpwo", 3'758'096'384},         {"mlpwi_1", 134'217'728}};
  for (const auto& [name, bytes] : experts) {
    CAPTURE(name);
    CHECK(bytes_of(deepseek, 1, name) == bytes);
  }
  CHECK(bytes_of(deepseek, 0, "mlpwi_0") == 1'207'959'552);  // of the dense layers
}

TEST_CASE("later versions save attention's statistics with its context") {
  const StepSpec llama = step_of(k405b, 128);
  CHECK(bytes_of(llama, 0, "context", {.context_has_statistics = true}) ==
        536'870'912 + 4 * 16384 * 128);
  const StepSpec deepseek = step_of(kDeepSeek, 128);
  CHECK(bytes_of(deepseek, 1, "context", {.context_has_statistics = true}) ==
        1'073'741'824 + 4 * 32768 * 128);
}

TEST_CASE("policies save what their table says") {
  struct Row {
    const char* policy;
    double device, host;  // bytes a token and layer in units of two bytes, of a 4,096 wide layer
  };
  // Of Llama 3.1 8B: input, out and query 4096 each, keys and values 1024, MLP 14336.
  const Row rows[] = {
      {"full", 4096, 0},
      {"save_out_proj", 8192, 0},
      {"save_qkv_proj", 4096 + 6144, 0},
      {"save_dot_except_mlp", 8192 + 6144, 0},
      {"save_dot_with_context_except_mlp", 12288 + 6144, 0},
      {"save_dot_except_mlpwi", 8192 + 6144, 0},  // mlpwo is of no use
      {"minimal", 8192 + 6144 + 28672, 0},
      {"minimal_with_context", 12288 + 6144 + 28672, 0},
      {"minimal_flash", 12288 + 6144 + 28672, 0},
      {"minimal_with_quantization", 8192 + 6144 + 28672, 0},
      {"minimal_with_context_and_quantization", 12288 + 6144 + 28672, 0},
      {"qkv_proj_offloaded", 4096, 6144},
      {"minimal_offloaded", 4096, 4096 + 6144 + 28672},
  };
  for (const Row& row : rows) {
    CAPTURE(row.policy);
    const StepSpec step = step_of(
        "{model_name: llama3.1-8b, per_device_batch_size: 1, "
        "max_target_length: 4096, remat_policy: " +
            std::string(row.policy) + "}",
        8);
    const SavedBytes saved = count_saved(step);
    const double unit = 2.0 * 4096 * 32;
    CHECK(static_cast<double>(saved.device.value()) == row.device * unit);
    CHECK(static_cast<double>(saved.host.value()) == row.host * unit);
  }
}

TEST_CASE("without padding the second expert input has one name only") {
  const StepSpec step = step_of(kDeepSeek, 128);
  for (const SavedTensor& tensor : list_saved_tensors(step)) {
    if (tensor.names.back() == "moe_mlpwi_0") CHECK(tensor.names.size() == 2);
    if (tensor.names.back() == "moe_mlpwi_1") CHECK(tensor.names.size() == 1);
  }
}

TEST_CASE("the input of a layer moves only where its own setting says so") {
  const auto choice = [](const char* policy) {
    return choice_of(step_of("{model_name: llama3.1-8b, per_device_batch_size: 1, "
                             "max_target_length: 4096, decoder_layer_input: offload, "
                             "remat_policy: " +
                                 std::string(policy) + "}",
                             8),
                     "decoder_layer_input");
  };
  CHECK(choice("minimal_offloaded") == SaveChoice::kDevice);
  CHECK(choice("custom") == SaveChoice::kHost);
}

}  // namespace
}  // namespace spillway
