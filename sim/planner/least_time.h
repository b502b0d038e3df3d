// How long one run of a computation takes at least, in whatever order its instructions run.
//
// Kernels run one after another on the main stream; collectives may run beside them, but none of
// what reads a result of theirs, and what they read stands before them:
//
//   kernels before c1 | c1 | kernels behind c1 and before c2 | c2 | kernels behind c2
//
// is no shorter than any chain of collectives each of which hangs on the one before.
#pragma once

#include <functional>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// `kernel` and `collective` say what instruction k takes on the main stream and on the fabric,
/// zero where it is no such thing; each as long as the computation.
Seconds least_time(const Computation& computation, const std::vector<Seconds>& kernel,
                   const std::vector<Seconds>& collective);

}  // namespace spillway
