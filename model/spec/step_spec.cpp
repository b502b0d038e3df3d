#include "model/spec/step_spec.h"

#include <cmath>

namespace spillway {

std::string_view name_of(MeshAxis axis) {
  static constexpr std::string_view kNames[kMeshAxes] = {
      "data",    "pipeline", "fsdp",   "fsdp_transpose",
      "context", "expert",   "tensor", "tensor_sequence"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return "adamw";
    case Optimizer::kAdafactor:
      return "adafactor";
    case Optimizer::kMuon:
      return "muon";
    case Optimizer::kSgd:
      return "sgd";
  }
  return "";
}

std::string_view name_of(Quantization quantization) {
  switch (quantization) {
    case Quantization::kNone:
      return "none";
    case Quantization::kFp8:
      return "fp8";
    case Quantization::kMxfp8:
      return "mxfp8";
    case Quantization::kNvfp4:
      return "nvfp4";
  }
  return "";
}

std::int64_t Mesh::batch_shares() const {
  return (*this)[MeshAxis::kData] * (*this)[MeshAxis::kFsdp] * (*this)[MeshAxis::kFsdpTranspose] *
         (*this)[MeshAxis::kExpert];
}

std::int64_t StepSpec::local_batch() const {
  const double sequences = batch_per_device * static_cast<double>(mesh.devices()) /
                           static_cast<double>(mesh.batch_shares());
  return std::llround(sequences);
}

}  // namespace spillway
