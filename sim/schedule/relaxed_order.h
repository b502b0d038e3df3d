// The order a computation has, with what was moved to hide copies and collectives moved back.
#pragma once

#include "sim/schedule/steps.h"

namespace spillway {

/// What frees more than it makes moves forward, to where the others that read the same have run.
/// Then everything else moves back, to where its result is needed, unless what it makes is smaller
/// than what would have to wait with it. Unlike XLA's schedulers, which know the graph alone, this
/// keeps what the order says and no graph shows any more: the optimization barriers of
/// recomputation.
StepOrder relaxed_order(const Steps& steps);

}  // namespace spillway
