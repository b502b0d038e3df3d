// Next, what frees most memory.
#pragma once

#include "sim/schedule/default_order/order_graph.h"

namespace spillway {

/// XLA's ListScheduler: of the nodes that could run, the one that frees most, then the one with
/// most users, then the one that was found last. What a node would free is looked at again only
/// where XLA does: when something that it reads itself has been read by another.
NodeOrder greedy_order(const OrderGraph& graph);

}  // namespace spillway
