// Operands right before who reads them.
#pragma once

#include "sim/schedule/default_order/order_graph.h"

namespace spillway {

/// XLA's PostOrderScheduler: each node after what it reads, first operand first.
NodeOrder post_order(const OrderGraph& graph);

/// XLA's DFSMemoryScheduler: the same, but of the operands first the one with most fan-out above
/// it, then the one with most bytes above it, then by name.
NodeOrder fan_out_order(const Computation& computation, const OrderGraph& graph);

}  // namespace spillway
