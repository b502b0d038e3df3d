// How many configurations a second StepEstimator answers on one core: Megatron's 175B on 64 A100
// (tensor 8, pipeline 8, 3 virtual stages), which beside_calculon.py gives to Calculon too. Each
// evaluation is of another number of microbatches and another policy.
//
//   estimate_bench PROFILES SECONDS      prints evaluations a second, and the last step's time
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "model/hardware/find_profile.h"
#include "model/spec/read_maxtext.h"
#include "sim/capacity/step_estimate.h"

namespace spillway {
namespace {

constexpr const char* kModel =
    "{decoder_block: gpt3, mlp_activations: [gelu], logits_via_embedding: true, fused_qkv: true, "
    "vocab_size: 51200, base_emb_dim: 12288, base_mlp_dim: 49152, base_num_query_heads: 96, "
    "base_num_kv_heads: 96, head_dim: 128, base_num_decoder_layers: 96, "
    "trainable_position_size: 2048, max_target_length: 2048, dtype: float16, "
    "per_device_batch_size: 0.015625, gradient_accumulation_steps: 64, ici_fsdp_parallelism: 1, "
    "ici_tensor_parallelism: 8, ici_pipeline_parallelism: 8, num_pipeline_microbatches: 192, "
    "remat_policy: ";

StepSpec step_with(const char* policy) {
  return read_maxtext(parse_yaml(std::string(kModel) + policy + "}", "bench").value(), 64).value();
}

int run(const char* profiles, double seconds) {
  const HardwareProfile a100 = find_profile("a100", {{profiles}}).value();
  StepSpec steps[] = {step_with("full"), step_with("minimal"), step_with("minimal_offloaded")};
  const StepEstimator estimator =
      StepEstimator::make(steps[0], a100, make_topology(64, a100)).value();
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::int64_t count = 0;
  double last = 0;
  while (passed() < seconds)
    for (StepSpec& step : steps) {
      step.accumulation = 1 + count++ % 64;
      last = estimator.estimate(step).step.value();
    }
  // And with everything made anew, mesh and machine too.
  const double changed = static_cast<double>(count) / passed();
  const auto again = std::chrono::steady_clock::now();
  std::int64_t made = 0;
  double anew = 0;
  do {
    const auto fresh = StepEstimator::make(steps[0], a100, make_topology(64, a100));
    last = fresh.value().estimate(steps[0]).step.value();
    ++made;
    anew = std::chrono::duration<double>(std::chrono::steady_clock::now() - again).count();
  } while (anew < seconds);
  std::cout << changed << " " << static_cast<double>(made) / anew << " " << last << "\n";
  return 0;
}

}  // namespace
}  // namespace spillway

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "estimate_bench PROFILES SECONDS\n";
    return 2;
  }
  return spillway::run(arguments[1], std::atof(arguments[2]));
}
