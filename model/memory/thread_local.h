// Scalars of the small functions that reductions, sorts and scatters apply. XLA gives each one an
// allocation, so that totals to the byte need them.
#pragma once

#include <vector>

#include "model/memory/assignment.h"

namespace spillway {

/// Allocations of every computation that is applied per element, fusions themselves left out but
/// not what they apply.
std::vector<Allocation> thread_local_allocations(const Program& program);

}  // namespace spillway
