// What XLA's buffer assignment allocates for a program: every allocation, and where each value
// lies.
//
// Parameters, constants, results and the tables of tuples get allocations of their own; a donated
// parameter, or a result, may house other values while it is not needed. Everything else is packed
// into one block for each memory space (heap.h), behind which the tuple tables follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/memory/lifetimes.h"

namespace spillway {

using AllocationId = Id<struct AllocationTag>;

struct Allocation {
  Bytes size;
  MemorySpace space = MemorySpace::kDevice;
  std::optional<std::uint32_t> parameter;  ///< number, for a parameter of the entry
  ShapeNodeIndex parameter_node = 0;
  bool aliased = false;  ///< a parameter whose buffer an output may take over
  bool live_out = false;
  bool constant = false;
  bool thread_local_scalar = false;  ///< inside a reduction's function; XLA counts these too
  bool tuple_table = false;          ///< until it is combined into the temporary block

  /// Temporaries: allocated for the run, and nobody outside sees them.
  bool is_temp() const { return !parameter && !live_out && !constant && !thread_local_scalar; }
};

using CellId = Id<struct CellTag>;

/// A piece of an allocation that holds one thing at a time: a place in the heap, or the whole of an
/// allocation that stands alone. Values that live in one cell never overlap in time.
struct Cell {
  AllocationId allocation;
  Bytes offset;
  Bytes size;
};

struct MemoryAssignment : Lifetimes {
  IdVector<AllocationId, Allocation> allocations;
  IdVector<CellId, Cell> cells;
  /// Where each value lies; empty for values of no size.
  IdVector<ValueId, std::optional<CellId>> cell_of;
  /// Size of the packed heap of each memory space, tuple tables left out.
  struct Heap {
    MemorySpace space = MemorySpace::kDevice;
    Bytes size;
  };
  std::vector<Heap> heaps;
  /// What was looked at on the way: it must not grow faster than the program.
  struct Effort {
    std::int64_t allocations = 0;  ///< as a place for a buffer
    std::int64_t residents = 0;    ///< of these, each compared with a value
    std::int64_t heap_ranges = 0;  ///< offsets in use, by the heap
  } effort;
};

/// Follows XLA's BufferAssigner for GPUs with a sequential schedule. How time grows:
/// docs/memory.md#speed.
MemoryAssignment assign_memory(const Program& program, const Schedule& schedule);

/// The same for those who have the lifetimes already.
MemoryAssignment assign_memory(const Program& program, Lifetimes lifetimes);

/// What stands outside the heaps: parameters, results, constants. Everything else is missing. To
/// pack the heaps is what takes longest.
MemoryAssignment assign_outside_heaps(const Program& program, Lifetimes lifetimes);

/// As assign_memory; empty where it is sure before the heaps are packed that the device needs
/// `limit` or more.
std::optional<MemoryAssignment> assign_memory_below(const Program& program,
                                                    const Schedule& schedule, Bytes limit);

}  // namespace spillway
