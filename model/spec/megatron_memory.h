// Closed forms for the memory of a Megatron transformer under tensor and pipeline parallelism, as
// its authors give them (arXiv 2205.05198, sections 4 and 5, and table 5): no layer's embedding, no
// head, first pipeline stage, FP16 with dropout and GELU.
//
//   state        18 B x 12 L h^2 / (t p)
//   activations  L k s b h A,  k = 1 + (p-1)/(p v) where stages are interleaved, else 1
//   A            10 + 24/t + 5 a s/(h t)   nothing recomputed
//                34/t + 5 a s/(h t)        sequence parallel
//                10 + 24/t                 attention recomputed ("selective")
//                34/t                      both
//                2                         everything recomputed
#pragma once

#include <cstdint>

namespace spillway {

struct MegatronShape {
  std::int64_t hidden = 0, heads = 0, layers = 0, sequence = 0, microbatch = 0;
  std::int64_t tensor = 1, pipeline = 1;
  std::int64_t interleaving = 1;  ///< virtual stages of a device
};

enum class MegatronRecompute { kNone, kSelective, kFull };

/// Bytes of parameters and optimizer state on one device.
double megatron_state_bytes(const MegatronShape& shape);
/// Bytes of activations on a device of the first stage.
double megatron_activation_bytes(const MegatronShape& shape, MegatronRecompute recompute,
                                 bool sequence_parallel);

}  // namespace spillway
