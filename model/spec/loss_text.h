// Both ends of a step as HLO: the embedding, and the head with the cross entropy, in both
// directions.
#pragma once

#include "model/spec/state_text.h"
#include "model/spec/step_text.h"

namespace spillway {

class LossText {
 public:
  LossText(const StepSpec& step, const StepTextOptions& options, HloBlock& block,
           const StepInputs& inputs);

  HloValue embed();
  struct Result {
    HloValue loss;
    HloValue gradient;  ///< of the last layer's output
  };
  Result loss(const HloValue& stream);
  /// Gradients of embedding and head into `result`.
  void embed_backward(const HloValue& gradient, StepGradients& result);

 private:
  HloValue gathered(const std::string& path, std::size_t dim);
  HloValue shared(const HloValue& gradient, std::size_t dim);
  HloValue one_hot(HloFusion& fusion);

  const StepSpec& step_;
  const StepTextOptions& options_;
  HloBlock& block_;
  const StepInputs& inputs_;
  std::int64_t b_, s_, t_, d_, vocabulary_;
  ElementType type_;
  std::vector<MeshAxis> embed_axes_, batch_axes_;
  HloValue table_, mask_, head_gradient_, norm_gradient_;
};

}  // namespace spillway
