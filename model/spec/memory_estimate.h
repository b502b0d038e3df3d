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

/// With A = arguments on the device + parameters laid out anew for the loops + saved stacks, T
/// tokens, V entries of the vocabulary, w bytes an activation:
///   loss      A + head + T V (2 w, and 4 for the exponentials where they are kept)
///   between   A + expert outputs turned as a whole + T V w
///   backward  A + gradients + one layer's weights and values + the head's gradient or its operand
///   update    all arguments, those kept on the host too, + gradients, cut to their norm and in the parameters' layout
/// An error: an array that the mesh cannot split.
Result<MemoryEstimate> estimate_memory(const StepSpec& step, const StepTextOptions& options = {});

}  // namespace spillway
