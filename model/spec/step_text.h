// A whole training step as HLO text: embedding, forward loops, loss, backward loops, gradients'
// norm and the optimizer's update, with everything that has a name saved on the device.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/spec/step_spec.h"

namespace spillway {

struct StepTextOptions {
  /// XLA for compute capability 10 keeps the exponentials of the logits in float32, for 9 it
  /// computes them twice (facts: programs.md 7).
  bool keeps_exponentials = true;
};

/// An error: an array that the mesh cannot split.
Result<std::string> write_step(const StepSpec& step, const StepTextOptions& options = {});

}  // namespace spillway
