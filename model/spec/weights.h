// The arrays that a model trains, with how each is spread over the mesh: parameter counts and the
// state's bytes follow, exactly.
//
//   wi_0   dims {4096, 32, 14336}   axes {embed, -, mlp}   on fsdp 8:   {512, 32, 14336}
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/base/units.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// What a dimension means, which decides over which axes of the mesh it is split.
enum class WeightAxis : std::uint8_t {
  kNone,
  kLayers,
  kEmbed,
  kEmbedMoe,    ///< of experts, which are spread over their own axis already
  kEmbedVocab,  ///< of embedding and head
  kVocab,
  kHeads,
  kMlp,
  kMlpMoe,
  kExperts,
  kLatent,  ///< a rank of latent attention
  kNorm,
};

/// What an array does in a layer.
enum class WeightRole : std::uint8_t {
  kEmbedding,
  kPositions,
  kHead,
  kFinalNorm,
  kNorm,
  kQuery,
  kKey,
  kValue,
  kFusedQkv,
  kOut,
  kLatentDown,  ///< to a rank
  kLatentUp,    ///< from it
  kMlpIn,
  kMlpOut,
  kGate,
  kExpertIn,
  kExpertOut,
  kBias,
  kQuantizerState,  ///< scales and histories of FP8, replicated and without moments
  kCounter,         ///< random keys and counts
};

struct WeightArray {
  std::string path;  ///< as MaxText's state calls it: "decoder/layers/mlp/wi_0/kernel"
  WeightRole role = WeightRole::kBias;
  int group = -1;  ///< into ModelSpec::groups; -1: of no layer
  std::vector<std::int64_t> dims;
  std::vector<WeightAxis> axes;
  ElementType type = ElementType::kF32;
  bool trained = true;       ///< has a gradient and moments
  bool is_parameter = true;  ///< counts as one

  std::int64_t elements() const;
  /// Position of the layers among the dimensions; -1 where it is of no layer.
  int layer_axis() const;
};

/// Every array of the model's state but the moments, in the order MaxText has its arguments in.
std::vector<WeightArray> list_weights(const StepSpec& step);

/// Parameters of a model, all of them or those a token uses.
std::int64_t count_parameters(const ModelSpec& model);
std::int64_t count_active_parameters(const ModelSpec& model);

/// Devices over which an axis of weights is split.
std::int64_t shares_of(WeightAxis axis, const Mesh& mesh);

/// The dimensions on one device. An error: one is no multiple of its shares.
Result<std::vector<std::int64_t>> local_dims(const WeightArray& array, const Mesh& mesh);

/// Bytes of the training state on one device.
struct StateBytes {
  Bytes params;     ///< trained arrays and what else is kept in their precision
  Bytes optimizer;  ///< moments
  Bytes gradients;  ///< while the update reads them
  Bytes other;      ///< counters, random keys, quantisers
};
Result<StateBytes> count_state(const StepSpec& step);
/// The part of one array, whose dimensions on one device are `local`.
void add_to_state(const StepSpec& step, const WeightArray& array,
                  const std::vector<std::int64_t>& local, StateBytes& sum);

}  // namespace spillway
