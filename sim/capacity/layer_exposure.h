// What of a layer's copies and collectives its kernels do not hide, with XLA's latency hiding: it
// moves starts and dones about within one iteration of the loop over layers, never between two.
//
//   forward    project  attention  out   in   feed forward        |
//   queries            [== to the host ==]                        |   hidden
//   hidden layer                          [====== to the host ====|===   exposed
//   backward   feed forward  in  out  attention  project
//   hidden layer [==== back ====]..feed forward waits
#pragma once

#include <span>

#include "model/cost/host_rates.h"
#include "model/spec/saved_tensors.h"
#include "sim/capacity/layer_times.h"

namespace spillway {

struct LayerExposure {
  Seconds collectives;        ///< both passes
  Seconds offloads, reloads;  ///< of one layer
};

/// `saved` are the values of this group. Copies of a direction follow one another; those back
/// begin when the backward layer does. A weight that is needed before anything runs is waited for,
/// and so is the gradient that comes last.
LayerExposure layer_exposure(const StepSpec& step, const LayerTimes& times,
                             std::span<const SavedTensor> saved, const HostRates& rates);

}  // namespace spillway
