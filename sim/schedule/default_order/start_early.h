// XLA's PostProcessSchedule: what runs beside the main stream starts early and ends late.
#pragma once

#include "sim/schedule/default_order/order_graph.h"

namespace spillway {

/// Synchronous collectives are put together; then asynchronous starts follow the last thing that
/// they wait for, and their dones stand before the first that waits for them. Copies between device
/// and host (copy-start) are not moved, nor are collectives with a start of their own but for
/// all-reduce and collective-permute.
NodeOrder start_early(const Computation& computation, const OrderGraph& graph,
                      const NodeOrder& order);

}  // namespace spillway
