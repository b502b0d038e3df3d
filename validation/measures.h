// What is computed for a row of published results: the product's own formulas, estimates and
// simulations, by the name that the row gives.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "validation/run_settings.h"

namespace spillway {

/// A value in the unit of its measure; of times also what they consist of, for series of runs.
struct Measured {
  double value = 0;
  double kernels = 0, exposed = 0;  ///< s; of an estimate, without the pipeline's bubble
  double bubble = 1;                ///< factor on both
  bool is_rate = false;             ///< the larger, the faster
  double flops = 0;                 ///< of the model, and once more forward where all is recomputed
};

class Measures {
 public:
  explicit Measures(ProfileSearchPath profiles) : profiles_(std::move(profiles)) {}

  /// Known are (unit):
  ///   step (s), tokens_per_second (of a GPU), sequences_per_second (of all), tflops (TFLOP/s of a
  ///   GPU, in the row's attention_count), device_gib: of a step
  ///   gain (%): how much faster `step` is than `against`
  ///   step_tflop (TFLOP), token_gflop (GFLOP): the formula by which frameworks log
  ///   state_gib, host_gib: arguments; what the policy keeps on the host
  ///   fits, fits_beside_pool (1 or 0): within fraction x HBM; whether what lies beside the pool
  ///   (the profile's reserve and `beside_gib`) has room
  ///   remat_limit_gib: of base_gib, arguments_gib and slop
  ///   copy_ms: of `bytes` in `direction` (offload, reload, both)
  ///   megatron_state_gib, megatron_activations_gib: the closed forms of megatron_memory.h
  /// An error: the measure is not known, or a setting of it is not understood.
  Result<Measured> measure(std::string_view name, const Settings& step,
                           const std::optional<Settings>& against);

 private:
  Result<Measured> time(const Settings& settings);
  Result<Measured> measure_step(std::string_view name, const Settings& settings);
  Result<Measured> measure_memory(std::string_view name, const Settings& settings);

  ProfileSearchPath profiles_;
  std::map<Settings, Measured> times_;  ///< rows share steps
};

std::vector<std::string_view> measure_names();

}  // namespace spillway
