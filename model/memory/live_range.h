// Buffers: sets of values that must share memory; and from when to when each value is live.
#pragma once

#include <set>
#include <vector>

#include "model/memory/in_place.h"
#include "model/memory/values.h"

namespace spillway {

using BufferId = Id<struct BufferTag>;

/// Values that must lie at one address: what a loop carries, in-place updates, donated parameters.
struct Buffer {
  std::vector<ValueId> values;  ///< ascending
  Bytes size;                   ///< of the largest value
  MemorySpace space = MemorySpace::kDevice;
  bool live_out = false;  ///< part of what the program returns
};

/// Both ends inclusive, as XLA counts: the value exists from its definition up to and with its last
/// use. Two values may share memory when one ends where the other starts only if the second may be
/// written over the first (operand_sharing.h).
///   position   0   1   2   3   4
///   a          [=======]            a: {0, 2}
///   b                  [=====]      b: {2, 4}, meets a at 2
struct LiveRange {
  LogicalTime start, end;
};

struct Liveness {
  IdVector<ValueId, BufferId> buffer_of;
  IdVector<BufferId, Buffer> buffers;
  /// Pieces of entry parameters that the program's alias table lets an output take over.
  std::set<ValueId> donated;
  /// Of each value, once those of one buffer have been made disjoint.
  IdVector<ValueId, LiveRange> ranges;
};

/// Follows XLA's HloAliasAnalysis and HloLiveRange of jaxlib 0.12, and of 0.10 and before where the
/// program has explicit elements: what an async start wraps began where it stands, one position
/// earlier. In between (0.11) the program does not tell; no total is known to depend on it.
Liveness find_liveness(const Program& program, const FlatSchedule& schedule,
                       const ValueTable& values, const InPlacePairs& in_place);

/// The ranges alone, in an order of execution that may be another: the buffers of `liveness` are
/// the same in each.
IdVector<ValueId, LiveRange> find_live_ranges(const Program& program, const FlatSchedule& schedule,
                                              const ValueTable& values, const Liveness& liveness);

}  // namespace spillway
