// Our assignment of memory against the one XLA wrote into the proto.
#pragma once

#include <optional>
#include <string>

#include "model/memory/assignment.h"
#include "model/program/xla_assignment.h"

namespace spillway {

struct AssignmentDifference {
  Bytes our_device, our_host, xla_device, xla_host;  ///< sums of all allocations
  /// The first allocation in XLA's order that we do not have: "allocation 3: temp of 2.0 GiB …".
  std::string first;
};

/// Compares allocation by allocation: size, memory space and kind. Empty when all are equal.
/// Thread-local scalars may come in any order: text does not say how XLA numbers them.
std::optional<AssignmentDifference> compare_with_xla(const MemoryAssignment& ours,
                                                     const XlaBufferAssignment& xla);

}  // namespace spillway
