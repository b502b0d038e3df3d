// What memory a step needs, by closed forms over its configuration: no program, no order, no heap.
// Some 20 us each; the program (step_program.h) takes 20 ms and is the one to believe.
//
// What each gives:
//                      estimate                              program
//   state, host bytes  exact                                 exact
//   products           exact, by weights and policy          exact
//   device peak        the largest of four phases, without   buffers, order and heap as XLA's
//                      holes
//   pipelines, a loss  yes                                   no
//   in pieces
#pragma once

#include <vector>

#include "model/base/result.h"
#include "model/spec/saved_tensors.h"
#include "model/spec/step_text.h"
#include "model/spec/weights.h"

namespace spillway {

enum class PeakPhase { kLoss, kBetweenLoops, kBackward, kUpdate };
std::string_view name_of(PeakPhase phase);

struct MemoryEstimate {
  StateBytes state;
  SavedBytes saved;
  Bytes device_peak;  ///< arguments, and what is live in the phase that needs most
  PeakPhase peak_at = PeakPhase::kLoss;
  Bytes host;
  Flops products;  ///< of a step on one device, with what is recomputed; attention left out
};

/// What of it hangs on model, mesh, precision and optimizer alone: bytes on one device.
struct WeightSums {
  StateBytes state;
  double turned = 0;           ///< parameters laid out anew for the loops
  double gradients = 0;        ///< of layers
  double update = 0;           ///< gradients cut to the norm, and turned
  double outer_gradients = 0;  ///< of embedding, head and last norm
  std::vector<double> whole;   ///< by group: elements of a layer's weights on one tensor share
};
/// An error: an array that the mesh cannot split.
Result<WeightSums> sum_weights(const StepSpec& step);

/// With A = arguments on the device + parameters laid out anew for the loops + saved stacks, T
/// tokens, V entries of the vocabulary, w bytes an activation:
///   loss      A + head + T V (2 w, and 4 for the exponentials where they are kept)
///   between   A + expert outputs turned as a whole + T V w
///   backward  A + gradients + one layer's weights and values + the head's gradient or its operand
///   update    all arguments, those kept on the host too, + gradients, cut to their norm and turned
/// An error: an array that the mesh cannot split.
Result<MemoryEstimate> estimate_memory(const StepSpec& step, const StepTextOptions& options = {});
/// The same with what is known of the step already: its weights, and list_saved_tensors.
MemoryEstimate estimate_memory(const StepSpec& step, const WeightSums& weights,
                               const std::vector<SavedTensor>& values,
                               const StepTextOptions& options);

}  // namespace spillway
