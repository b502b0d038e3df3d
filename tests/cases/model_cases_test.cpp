// Cases that users of other tools reported about models' configurations: docs/cases.md.
#include <doctest/doctest.h>

#include <string>

#include "model/spec/memory_estimate.h"
#include "model/spec/read_hf_config.h"
#include "model/spec/saved_tensors.h"
#include "model/spec/weights.h"
#include "tests/support/spec_step.h"

namespace spillway {
namespace {

using testing::step_of;

/// Bytes of all layers' inputs on one device.
Bytes layer_inputs(const StepSpec& step) {
  Bytes sum;
  for (const SavedTensor& tensor : list_saved_tensors(step))
    if (tensor.names.front() == "decoder_layer_input")
      sum += tensor.bytes_per_layer() *
             step.model.groups[static_cast<std::size_t>(tensor.group)].layers;
  return sum;
}

TEST_CASE("C28: layer inputs of long sequences, to the byte") {
  const std::string run = "per_device_batch_size: 1\nmax_target_length: 131072\n";
  // layers x tokens x hidden x 2 bytes
  CHECK(layer_inputs(step_of("model_name: qwen3-8b\n" + run, 1)) ==
        Bytes(std::int64_t{36} * 131072 * 4096 * 2));
  CHECK(layer_inputs(step_of("model_name: llama3.1-405b\n" + run, 1)) ==
        Bytes(std::int64_t{504} << 30));
}

Result<ModelSpec> config(const std::string& text) { return parse_hf_config(text, "config.json"); }

const std::string kSizes =
    R"("hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 4,
       "num_attention_heads": 8, "vocab_size": 1000)";

TEST_CASE("C45: a text model inside of another, aliases, and nothing made up") {
  SUBCASE("the top level holds the vision tower") {
    const auto model = config(R"({"model_type": "gemma3", "hidden_size": 16,
        "num_hidden_layers": 33, "text_config": {)" +
                              kSizes + "}}");
    REQUIRE_MESSAGE(model.ok(), (model.ok() ? "" : to_text(model.error())));
    CHECK(model->embed == 64);
    CHECK(model->layers() == 4);
  }
  SUBCASE("keys and values have as many heads as queries where nobody says otherwise") {
    const auto model = config(R"({"model_type": "llama", )" + kSizes + "}");
    REQUIRE_MESSAGE(model.ok(), (model.ok() ? "" : to_text(model.error())));
    CHECK(model->groups[0].attention.kv_heads == 8);
    CHECK(model->groups[0].attention.head_dim == 8);
  }
  SUBCASE("heads wider than the model divided by them") {
    const auto model = config(R"({"model_type": "llama", "head_dim": 16, )" + kSizes + "}");
    REQUIRE(model.ok());
    CHECK(model->groups[0].attention.head_dim == 16);
  }
  SUBCASE("a dimension that is not there has no default") {
    for (const std::string key :
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
      CAPTURE(key);
      std::string text = R"({"model_type": "llama", )" + kSizes + "}";
      const std::size_t at = text.find("\"" + key + "\"");
      text.replace(at, key.size() + 2, "\"other\"");
      const auto model = config(text);
      REQUIRE_FALSE(model.ok());
      CHECK(to_text(model.error()).find(key) != std::string::npos);
    }
  }
  SUBCASE("experts of which nobody knows how many") {
    const auto model =
        config(R"({"model_type": "mixtral", "num_experts_per_tok": 2, )" + kSizes + "}");
    REQUIRE_FALSE(model.ok());
    CHECK(to_text(model.error()).find("num_local_experts") != std::string::npos);
  }
}

TEST_CASE("C46: sixteen bytes a parameter, and the logits on top") {
  const std::string run =
      "model_name: qwen3-14b\nici_tensor_parallelism: 4\nper_device_batch_size: 1\n";
  const StepSpec step = step_of(run + "max_target_length: 2048\n", 4);
  const StateBytes state = count_state(step).value();
  const auto parameters = static_cast<double>(count_parameters(step.model));
  const double sixteen =
      static_cast<double>((state.params + state.optimizer + state.gradients).value());
  // Norms are on every device.
  CHECK(sixteen == doctest::Approx(16 * parameters / 4).epsilon(0.001));

  const StepSpec on_host =
      step_of(run + "max_target_length: 2048\noptimizer_memory_host_offload: true\n", 4);
  const MemoryEstimate device = estimate_memory(step).value();
  const MemoryEstimate host = estimate_memory(on_host).value();
  CHECK(host.host - device.host == state.optimizer);
  CHECK(host.device_peak <= device.device_peak);  // they come back for the update

  // Float32 logits of many tokens decide the peak, and it says so.
  StepSpec many = step_of(run + "max_target_length: 65536\n", 4);
  const MemoryEstimate loss = estimate_memory(many).value();
  CHECK(loss.peak_at == PeakPhase::kLoss);
  many.optimizer_on_host = true;
  CHECK(loss.device_peak - estimate_memory(many).value().device_peak == state.optimizer);
}

}  // namespace
}  // namespace spillway
