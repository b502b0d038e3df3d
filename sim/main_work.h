// How long kernels of the main stream take between two places of the step.
#pragma once

#include <vector>

#include "sim/engine/result.h"
#include "sim/lowering/lower.h"

namespace spillway {

class MainWork {
 public:
  MainWork(const LoweredProgram& lowered, const engine::EngineResult& run);

  /// Of the steps [from, to): kernels and collectives that run on the main stream, each as long as
  /// it took on average; of one iteration of the loops in between.
  Seconds between(engine::StepId from, engine::StepId to) const;

 private:
  std::vector<double> before_;  ///< seconds in front of each step
};

}  // namespace spillway
