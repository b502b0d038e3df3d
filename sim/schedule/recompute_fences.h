// The optimization barriers of recomputation, which a finished program no longer shows.
#pragma once

#include "model/memory/assignment.h"
#include "sim/schedule/step_graph.h"

namespace spillway {

/// In unrolled programs JAX lets the recomputation of a layer, and the reload of what it offloaded,
/// wait for the gradient that arrives at the layer. XLA obeys that while it orders, and then drops
/// the barriers. What they said is found again in the order that the program has: where what is
/// computed anew, or reloaded, first meets a gradient, it waits for that gradient if that was there
/// before it.
///
///   order   grad(l+1)  recompute(l)  grad(l) = f(recompute(l), grad(l+1))
///   found   grad(l+1) before recompute(l)
///
/// In loops nothing is found, and nothing is lost: an iteration does not begin before its gradient
/// is there.
IdVector<ComputationId, std::vector<Precedence>> find_recompute_fences(const Program& program,
                                                                       const Lifetimes& given);

}  // namespace spillway
