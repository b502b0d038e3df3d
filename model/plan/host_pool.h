// How XLA's pool of pinned host memory grows: what it pins for what it hands out.
#pragma once

#include <span>

#include "model/base/units.h"

namespace spillway {

/// What a growing BFC pool has pinned after these requests in turn, none of them freed. It starts
/// with nothing. When no region has room it adds one: of 2 MiB at first, of twice the size each
/// time after, and where a request is larger, of the next power of two that holds it (then the next
/// region has that size again). The sum stays within `limit`, the last region being cut down to
/// what is left. Requests are rounded up to 256 B; one that finds no room below the limit is left
/// out.
/// Source: BFCAllocator::Extend in xla/tsl/framework/bfc_allocator.cc. Not modelled: regions that
/// the system refuses, after which the pool tries smaller ones.
Bytes pinned_by_growth(std::span<const Bytes> requests, Bytes limit);

}  // namespace spillway
