#include "model/spec/megatron_memory.h"

namespace spillway {

double megatron_state_bytes(const MegatronShape& shape) {
  constexpr double kBytesAParameter = 18;  // FP16 and FP32 weights and gradients, two moments
  const double hidden = static_cast<double>(shape.hidden);
  return kBytesAParameter * 12 * static_cast<double>(shape.layers) * hidden * hidden /
         static_cast<double>(shape.tensor * shape.pipeline);
}

double megatron_activation_bytes(const MegatronShape& shape, MegatronRecompute recompute,
                                 bool sequence_parallel) {
  const double t = static_cast<double>(shape.tensor);
  const double p = static_cast<double>(shape.pipeline);
  const double v = static_cast<double>(shape.interleaving);
  const double hidden = static_cast<double>(shape.hidden);
  const double sequence = static_cast<double>(shape.sequence);
  double a = sequence_parallel ? 34 / t : 10 + 24 / t;
  if (recompute == MegatronRecompute::kNone)
    a += 5 * static_cast<double>(shape.heads) * sequence / (hidden * t);
  if (recompute == MegatronRecompute::kFull) a = 2;
  const double first_stage = v > 1 ? 1 + (p - 1) / (p * v) : 1;
  return static_cast<double>(shape.layers) * first_stage * sequence *
         static_cast<double>(shape.microbatch) * hidden * a;
}

}  // namespace spillway
