#include "model/spec/step_program.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "model/cost/program_flops.h"
#include "model/memory/assignment.h"
#include "model/memory/memory_report.h"
#include "model/program/validate.h"
#include "model/residuals/residuals.h"
#include "model/spec/saved_tensors.h"
#include "model/spec/weights.h"
#include "tests/support/spec_step.h"

namespace spillway {
namespace {

using testing::step_of;

const std::string kToy =
    "decoder_block: llama2\nbase_emb_dim: 256\nbase_num_query_heads: 8\nbase_num_kv_heads: 2\n"
    "head_dim: 32\nbase_num_decoder_layers: 4\nbase_mlp_dim: 512\nvocab_size: 1024\n"
    "mlp_activations: [silu, linear]\nper_device_batch_size: 2\nmax_target_length: 128\n";

// Every kind of layer, kernel, mesh and optimizer makes a sound program, in which each name that
// backward needs is a residual of the bytes the list of saved tensors has.
TEST_CASE("programs of configurations are sound and hold what is saved") {
  struct Row {
    std::string name;
    std::string settings;
    std::int64_t devices;
  };
  const std::string small = "per_device_batch_size: 2\nmax_target_length: 512\n";
  const Row rows[] = {
      {"toy", kToy, 8},
      {"one device", kToy, 1},
      {"tensor", kToy + "ici_tensor_parallelism: 2\n", 8},
      {"context", kToy + "ici_context_parallelism: 2\n", 8},
      {"two slices", kToy + "dcn_data_parallelism: 2\n", 8},
      {"fsdp transposed", kToy + "ici_fsdp_transpose_parallelism: 2\n", 8},
      {"plain attention", kToy + "attention: dot_product\n", 8},
      {"accumulated", kToy + "gradient_accumulation_steps: 3\n", 8},
      {"bfloat16", kToy + "weight_dtype: bfloat16\ngrad_dtype: bfloat16\n", 8},
      {"adafactor", kToy + "opt_type: adafactor\n", 8},
      {"muon", kToy + "opt_type: muon\n", 8},
      {"sgd", kToy + "opt_type: sgd\n", 8},
      {"one-hot embedding", kToy + "use_iota_embed: true\n", 8},
      {"qwen3", "model_name: qwen3-0.6b\n" + small, 8},
      {"qwen2", "model_name: qwen2.5-1.5b\n" + small, 2},
      {"gemma", "model_name: gemma-2b\n" + small, 8},
      {"gemma2", "model_name: gemma2-2b\n" + small, 8},
      {"gemma3", "model_name: gemma3-4b\n" + small, 8},
      {"gemma4", "model_name: gemma4-31b\n" + small, 8},
      {"gpt3", "model_name: gpt3-6b\n" + small, 8},
      {"gpt_oss", "model_name: gpt-oss-20b\n" + small, 8},
      {"experts, dropless", "model_name: qwen3-30b-a3b\n" + small, 8},
      {"experts, spread", "model_name: qwen3-30b-a3b\nici_expert_parallelism: 4\n" + small, 8},
      {"experts, ragged", "model_name: mixtral-8x7b\nragged_buffer_factor: 2.0\n" + small, 8},
      {"experts, capacity",
       "model_name: mixtral-8x7b\nsparse_matmul: false\ncapacity_factor: 1.25\n" + small, 8},
      {"latent, no query rank",
       "model_name: deepseek2-16b\nsparse_matmul: false\ncapacity_factor: 1.0\n" + small, 8},
      {"latent, dropless", "model_name: deepseek3-671b\nici_expert_parallelism: 8\n" + small, 64},
      {"kimi", "model_name: kimi-k2-1t\nici_expert_parallelism: 8\n" + small, 64},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const StepSpec step = step_of(row.settings, row.devices);
    const auto made = build_step_program(step);
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : to_text(made.error())));
    const Program& program = made->program;
    const auto wrong = validate(program);
    REQUIRE_MESSAGE(!wrong, (wrong ? to_text(*wrong) : ""));
    const MemoryAssignment memory = assign_memory(program, text_schedule(program).value());
    const ResidualTable table = find_residuals(program, memory, made->names);
    std::multiset<std::pair<std::string, std::int64_t>> found, wanted;
    for (const Residual& residual : table.residuals)
      if (!residual.names.empty())
        found.insert({joined_names(residual), residual.bytes_per_layer.value()});
    for (const SavedTensor& tensor : list_saved_tensors(step)) {
      // A loop of one iteration is none: what its only layer saves stays where it is.
      const auto group = static_cast<std::size_t>(tensor.group);
      if (!tensor.is_needed || step.model.groups[group].layers == 1) continue;
      std::string names;
      for (const std::string& name : tensor.names) names += (names.empty() ? "" : "=") + name;
      wanted.insert({names, tensor.bytes_per_layer().value()});
    }
    CHECK(found == wanted);
    // Statics: state as counted, counters of optimizer and step, and four arrays of tokens.
    const StateBytes state = count_state(step).value();
    const std::int64_t tokens = step.local_tokens() * step.accumulation;
    CHECK(sum_totals(memory).argument ==
          state.params + state.optimizer + state.other + Bytes(12 + 4 * 4 * tokens));
  }
}

// 2 FLOPs a multiplication: forward once, backward twice, and the one-hot embedding forward and its
// gradient; attention is a library call and does not count as a product.
TEST_CASE("products of a toy step") {
  const StepSpec step = step_of(kToy + "use_iota_embed: true\n", 8);
  const auto made = build_step_program(step);
  REQUIRE(made.ok());
  const double t = 2 * 128;
  const double layer = 256 * (8 + 2 + 2) * 32 + 8 * 32 * 256 + 3 * 256 * 512;
  const double head = 256 * 1024;
  CHECK(count_flops(made->program).dot_per_step.value() ==
        doctest::Approx(2 * t * (3 * 4 * layer + 3 * head + 2 * head)).epsilon(1e-9));
}

TEST_CASE("what no program is made of is said") {
  const auto pipeline = build_step_program(step_of(kToy + "ici_pipeline_parallelism: 2\n", 8));
  REQUIRE_FALSE(pipeline.ok());
  CHECK(to_text(pipeline.error()) ==
        "error: a program of a pipeline is not made\n  the closed-form estimate has pipelines");
}

}  // namespace
}  // namespace spillway
