// The numbers people ask of a memory assignment: totals by class, the most that is live at once and
// who that is, HBM over time, host memory, and what crosses the link in a step.
#pragma once

#include <string>
#include <vector>

#include "model/memory/assignment.h"

namespace spillway {

/// Sums over allocations. Device is memory spaces 0, 1 and 2, host is 5. A parameter that an output
/// takes over counts as argument, output and alias.
struct MemoryTotals {
  Bytes argument, output, alias, temp;
  Bytes total_device;  ///< what the allocator must provide
  Bytes host_argument, host_output, host_alias, host_temp;
  Bytes largest_allocation;  ///< on the device, in one block
  /// The device total if the heap packed without gaps.
  Bytes no_fragmentation;
};

/// What a buffer is to the user.
enum class BufferClass { kParameter, kOutput, kConstant, kTemporary };
std::string_view name_of(BufferClass kind);

/// Something that lies in HBM when most is live.
struct LiveBuffer {
  std::string name;  ///< the instruction that defines it, with the tuple element: "while.37{2}"
  std::string shape;
  std::string op_name;  ///< the JAX operation, where XLA tells it
  BufferId buffer;
  Bytes bytes;
  BufferClass kind = BufferClass::kTemporary;
  std::optional<std::int64_t> layer;  ///< of unrolled programs, from op_name
};

/// HBM from this position of the flattened schedule on.
struct CurvePoint {
  LogicalTime position;
  Bytes bytes;
};

struct HostTraffic {
  Bytes device_to_host, host_to_device;    ///< of one step, loops multiplied
  std::int64_t offloads = 0, reloads = 0;  ///< copies of one step
};

struct MemoryReport {
  MemoryTotals totals;
  Bytes live_peak;
  LogicalTime live_peak_at;
  std::string live_peak_instruction;
  std::vector<LiveBuffer> live_at_peak;  ///< largest first
  /// Changes only. Parameters the caller keeps are in it, and the last point is what is returned.
  std::vector<CurvePoint> curve;
  HostTraffic traffic;
};

enum class MemorySide { kDevice, kHost };
/// What is live over the schedule; changes only, the last point is what lies there behind its end.
std::vector<CurvePoint> live_curve(const MemoryAssignment& memory, MemorySide side);

MemoryTotals sum_totals(const MemoryAssignment& memory);

/// Pinned host memory of one device: temporaries, arguments, and results that reuse no argument.
Bytes host_bytes(const MemoryTotals& totals);
HostTraffic sum_traffic(const Program& program);
/// What lies in pinned host memory at any time, largest first; of a place that holds several things
/// one after the other, the first.
std::vector<LiveBuffer> list_host_arrays(const Program& program, const MemoryAssignment& memory);
MemoryReport make_memory_report(const Program& program, const MemoryAssignment& memory);

/// The layer an operation belongs to in an unrolled program: "layers_12" or "layer_12" in its
/// op_name.
std::optional<std::int64_t> layer_of(std::string_view op_name);

}  // namespace spillway
