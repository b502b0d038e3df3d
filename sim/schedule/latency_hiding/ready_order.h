// Which of two ready nodes XLA's latency-hiding scheduler takes first.
#pragma once

#include <optional>

#include "sim/schedule/latency_hiding/list_scheduler.h"

namespace spillway {

/// A ready node, and what has been worked out about it for this choice.
struct Candidate {
  NodeIndex node = 0;
  std::optional<MemoryPressure::Change> change;
  bool is_constrained = false;  ///< its resource is used up, and wanted by others
};

/// Whether `a` is better than `b`, by the first of XLA's rules that tells them apart. Not always
/// transitive: who is compared with whom, and in which order, is part of the result.
bool is_better(const ListState& state, Candidate& a, Candidate& b);

/// Whether a resource that the node uses is used up while other ready nodes want it.
bool is_constrained(const ListState& state, NodeIndex node);

}  // namespace spillway
