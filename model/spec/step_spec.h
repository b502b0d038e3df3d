// A training step as its configuration describes it: a model, how it is spread over devices, in
// which precision, what is saved for the backward pass. What build_step_program makes a program of.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/shape.h"
#include "model/spec/model_spec.h"

namespace spillway {

/// Axes of the mesh, as MaxText calls them. ICI and DCN parts of one axis are multiplied.
enum class MeshAxis : std::uint8_t {
  kData,
  kStage,  ///< pipeline
  kFsdp,
  kFsdpTranspose,
  kContext,
  kExpert,
  kTensor,
  kTensorSequence,
};
inline constexpr std::size_t kMeshAxes = 8;
std::string_view name_of(MeshAxis axis);

struct Mesh {
  std::array<std::int64_t, kMeshAxes> sizes = {1, 1, 1, 1, 1, 1, 1, 1};

  std::int64_t& operator[](MeshAxis axis) { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t operator[](MeshAxis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t devices() const {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) product *= size;
    return product;
  }
  /// Devices that share a batch's sequences out among themselves.
  std::int64_t batch_shares() const;
  /// Devices among which the layers' hidden dimensions are split.
  std::int64_t tensor_shares() const {
    return (*this)[MeshAxis::kTensor] * (*this)[MeshAxis::kTensorSequence];
  }
};

enum class Optimizer { kAdamW, kAdafactor, kMuon, kSgd };
std::string_view name_of(Optimizer optimizer);

/// What matrix products read: weights and activations as stored, or quantised in front of each.
enum class Quantization { kNone, kFp8, kMxfp8, kNvfp4 };
std::string_view name_of(Quantization quantization);

struct Precision {
  ElementType weights = ElementType::kF32;       ///< as kept
  ElementType activations = ElementType::kBF16;  ///< of products and what is saved
  ElementType gradients = ElementType::kF32;     ///< as accumulated
  ElementType first_moment = ElementType::kF32;
  ElementType second_moment = ElementType::kF32;
  Quantization quantization = Quantization::kNone;
};

/// Who computes softmax(q k) v.
enum class AttentionKernel {
  kFlash,  ///< one kernel: scores are never in memory
  kPlain,  ///< products and a softmax: scores of every pair are saved
};

/// How tokens get to their experts.
enum class Dispatch {
  kCapacity,  ///< a fixed number of places an expert; what does not fit is dropped
  kDropless,  ///< grouped products over as many rows as there are
  kRagged,    ///< the same in a buffer of fixed size
};

/// What becomes of a name in the forward pass, as MaxText's remat_policy says.
enum class SaveChoice { kRecompute, kDevice, kHost };

struct StepSpec {
  ModelSpec model;
  Mesh mesh;
  double batch_per_device = 0;  ///< sequences, of one microbatch
  std::int64_t sequence = 0;
  std::int64_t accumulation = 1;
  Precision precision;
  Optimizer optimizer = Optimizer::kAdamW;
  AttentionKernel attention = AttentionKernel::kFlash;
  Dispatch dispatch = Dispatch::kDropless;
  double capacity_factor = 0;  ///< of kCapacity
  double ragged_factor = 0;    ///< of kRagged: rows of the buffer over balanced rows
  std::string policy = "full";
  std::map<std::string, SaveChoice, std::less<>> saves;  ///< only what is not recomputed
  bool optimizer_on_host = false;
  bool params_on_host = false;
  bool clips_gradients = true;
  bool embeds_by_product = false;     ///< use_iota_embed: the lookup is a matrix product
  std::int64_t vocabulary_tiles = 1;  ///< pieces the loss is computed in
  std::int64_t pipeline_repeats = 1;
  std::int64_t pipeline_microbatches = 0;
  std::vector<std::string> assumptions;  ///< what the configuration left open and how it was taken

  /// Sequences of one microbatch on one device, after context parallelism's share was taken out.
  std::int64_t local_batch() const;
  /// Tokens of one sequence on one device.
  std::int64_t local_sequence() const { return sequence / mesh[MeshAxis::kContext]; }
  std::int64_t local_tokens() const { return local_batch() * local_sequence(); }
};

}  // namespace spillway
