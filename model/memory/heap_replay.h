// From live ranges to what the heap packs: one item a place, with its times of use.
#pragma once

#include <optional>
#include <vector>

#include "model/memory/heap.h"
#include "model/memory/live_range.h"
#include "model/memory/operand_sharing.h"

namespace spillway {

struct HeapPlan {
  std::vector<HeapItem> items;
  /// The item each value lies in; empty for values of no size and those of other buffers.
  IdVector<ValueId, std::optional<std::uint32_t>> item_of;
};

/// Replays definitions and deaths of the buffers' values in the order of the schedule, as XLA's
/// HeapSimulator does. A buffer is one item, whatever its values; a buffer of one value joins the
/// item of an operand that dies where it is defined, if it may be written over that operand.
HeapPlan replay_heap(const Program& program, const ValueTable& values, const Liveness& liveness,
                     const std::vector<BufferId>& buffers, OperandSharing& sharing);

}  // namespace spillway
