// Memory and time of a training step by formulas over its configuration: no program, no order, no
// heap. For grids of thousands of cells; what it says of one cell, build_step_program with the
// simulator says more exactly.
//
// Leaves out: holes between arrays, what latency hiding cannot reorder, pipelines' bubbles beyond
// (stages - 1) / microbatches.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/cost/topology.h"
#include "model/hardware/profile.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// What decides how long a step lasts.
enum class StepBound : std::uint8_t {
  kCompute,      ///< matrix units
  kHbm,          ///< HBM's bandwidth
  kCollectives,  ///< fabric or network: exposed for longer than kernels of either kind run
  kHostLink,     ///< copies to and from the host
};
std::string_view name_of(StepBound bound);

/// One step of one device.
struct StepEstimate {
  Bytes state;    ///< weights, moments, other state, on the device
  Bytes saved;    ///< named values and layer inputs kept for the backward pass, on the device
  Bytes working;  ///< gradients, gathered weights, logits and the values of one layer
  Bytes device;   ///< the sum: what the allocator must provide (estimate_memory)
  Bytes host;     ///< saved values and state in pinned host memory

  Seconds step;
  Seconds kernels;              ///< forward, backward and update, one behind the other
  Seconds recomputed;           ///< of those, what the backward pass does again
  Seconds exposed_collectives;  ///< beyond the kernels that hide them
  Seconds exposed_copies;
  StepBound bound = StepBound::kCompute;

  Flops model_flops;  ///< training_flops.h, causal: what MFU counts
  double tokens = 0;  ///< of one device, all microbatches
};

/// What of a step hangs on model, mesh, precision and machine alone, worked out once; batch,
/// sequence and policy change from call to call.
class StepEstimator {
 public:
  /// The profile must outlive it. An error: a mesh that cannot split an array.
  static Result<StepEstimator> make(const StepSpec& step, const HardwareProfile& profile,
                                    const Topology& topology);

  /// Of the same model, mesh and precision with the batch, sequence, accumulation, saves and
  /// places of state of `step`. Some microseconds.
  StepEstimate estimate(const StepSpec& step) const;

  StepEstimator(StepEstimator&&) noexcept;
  StepEstimator& operator=(StepEstimator&&) noexcept;
  ~StepEstimator();

  struct Facts;

 private:
  explicit StepEstimator(std::unique_ptr<Facts> facts);
  std::unique_ptr<Facts> facts_;
};

}  // namespace spillway
