// Matrix products by cuBLASLt, which is looked for when the probe runs: where it is missing,
// everything else is still measured.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "calibration/probe/device.h"

namespace spillway::probe {

/// Products on one GPU, D[m, n] = A[m, k] B[k, n]; D is bf16, sums are f32.
class Gemms {
 public:
  explicit Gemms(int gpu);
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;

  /// Operands and the fastest algorithm for a product, before it is queued; "" when all is well.
  std::string prepare(const KernelLoad& load);
  /// Queues one; `prepare` came before.
  std::string enqueue(const KernelLoad& load, cudaStream_t stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::probe
