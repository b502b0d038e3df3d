#include "model/memory/memory_report.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>

#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"

namespace spillway {
namespace {

/// When each cell holds something: disjoint ranges by start, half-open here.
struct Occupancy {
  struct Stretch {
    std::int32_t start = 0, end = 0;
    CellId cell;
    ValueId value;  ///< the first that lies there
  };
  std::vector<Stretch> stretches;
};

/// The values of each cell, of one cell after the other, in one list.
class CellValues {
 public:
  explicit CellValues(const MemoryAssignment& memory) : first_(memory.cells.size() + 1, 0) {
    for (const auto& cell : memory.cell_of)
      if (cell) ++first_[cell->index];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    values_.resize(first_.back());
    // Here the end of each cell; filled from behind, it comes down to where the cell begins.
    for (std::size_t k = memory.cell_of.size(); k-- > 0;)
      if (const auto cell = memory.cell_of[ValueId(k)]) values_[--first_[cell->index]] = ValueId(k);
  }
  std::span<ValueId> of(CellId cell) {
    return std::span(values_).subspan(first_[cell.index],
                                      first_[cell.index + 1] - first_[cell.index]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<ValueId> values_;
};

/// Joins what follows one another in a cell; values that meet share the moment they meet at.
Occupancy find_occupancy(const MemoryAssignment& memory) {
  CellValues residents(memory);
  Occupancy occupancy;
  for (const CellId cell : ids(memory.cells)) {
    const auto values = residents.of(cell);
    const auto start_of = [&memory](ValueId v) { return memory.liveness.ranges[v].start; };
    if (!std::ranges::is_sorted(values, {}, start_of))
      std::ranges::stable_sort(values, {}, start_of);
    std::optional<Occupancy::Stretch> open;
    for (const ValueId value : values) {
      const LiveRange& range = memory.liveness.ranges[value];
      const std::int32_t end = range.end.value() + 1;
      if (open && range.start.value() <= open->end) {
        open->end = std::max(open->end, end);
        continue;
      }
      if (open) occupancy.stretches.push_back(*open);
      open = Occupancy::Stretch{range.start.value(), end, cell, value};
    }
    if (open) occupancy.stretches.push_back(*open);
  }
  return occupancy;
}

bool on_device(const MemoryAssignment& memory, CellId cell) {
  return !is_host(memory.allocations[memory.cells[cell].allocation].space);
}

/// By how much what is live changes at each position of the schedule, and behind its end.
class Changes {
 public:
  explicit Changes(const FlatSchedule& schedule) : by_position_(schedule.order.size() + 2, 0) {}
  void add(const Occupancy::Stretch& stretch, Bytes size) {
    by_position_[static_cast<std::size_t>(stretch.start)] += size.value();
    by_position_[static_cast<std::size_t>(stretch.end)] -= size.value();
  }
  const std::vector<std::int64_t>& by_position() const { return by_position_; }

 private:
  std::vector<std::int64_t> by_position_;
};

std::vector<CurvePoint> make_curve(const MemoryAssignment& memory, const Occupancy& occupancy,
                                   MemorySide side) {
  Changes changes(memory.schedule);
  for (const auto& stretch : occupancy.stretches)
    if (on_device(memory, stretch.cell) == (side == MemorySide::kDevice))
      changes.add(stretch, memory.cells[stretch.cell].size);
  std::vector<CurvePoint> curve;
  std::int64_t live = 0;
  const std::int32_t end = memory.schedule.end().value();  // what is returned lives on behind it
  for (std::int32_t position = 0; position <= end; ++position) {
    const std::int64_t change = changes.by_position()[static_cast<std::size_t>(position)];
    if (change == 0) continue;
    live += change;
    curve.push_back({LogicalTime(position), Bytes(live)});
  }
  return curve;
}

BufferClass class_of(const Allocation& allocation) {
  if (allocation.parameter) return BufferClass::kParameter;
  if (allocation.constant) return BufferClass::kConstant;
  return allocation.live_out ? BufferClass::kOutput : BufferClass::kTemporary;
}

LiveBuffer describe(const Program& program, const MemoryAssignment& memory, CellId cell,
                    ValueId value) {
  const Position& at = memory.values[value].defined_at;
  const Instruction& in = program[at.instruction];
  LiveBuffer buffer;
  buffer.name = std::string(in.name);
  if (in.shape.is_tuple()) buffer.name += path_to_string(in.shape, at.node);
  buffer.shape = to_string(memory.values[value].shape);
  buffer.op_name =
      metadata_text(program[at.instruction.computation], at.instruction.instruction, "op_name");
  buffer.buffer = memory.liveness.buffer_of[value];
  buffer.bytes = memory.cells[cell].size;
  buffer.kind = class_of(memory.allocations[memory.cells[cell].allocation]);
  buffer.layer = layer_of(buffer.op_name);
  return buffer;
}

/// What lies in each cell at `position`; the later one where two meet.
IdVector<CellId, std::optional<ValueId>> residents_at(const MemoryAssignment& memory,
                                                      LogicalTime position) {
  IdVector<CellId, std::optional<ValueId>> found(memory.cells.size());
  for (const ValueId value : ids(memory.values.values())) {
    const auto cell = memory.cell_of[value];
    const LiveRange& range = memory.liveness.ranges[value];
    if (!cell || position < range.start || range.end < position) continue;
    auto& resident = found[*cell];
    if (!resident || memory.liveness.ranges[*resident].start <= range.start) resident = value;
  }
  return found;
}

std::vector<LiveBuffer> describe_peak(const Program& program, const MemoryAssignment& memory,
                                      LogicalTime peak) {
  const auto residents = residents_at(memory, peak);
  std::vector<LiveBuffer> live;
  for (const CellId cell : ids(memory.cells))
    if (residents[cell] && on_device(memory, cell))
      live.push_back(describe(program, memory, cell, *residents[cell]));
  std::ranges::stable_sort(live, std::ranges::greater{}, &LiveBuffer::bytes);
  return live;
}

/// The largest sum of heap cells of one memory space that are live together.
Bytes packed_perfectly(const MemoryAssignment& memory, const Occupancy& occupancy,
                       MemorySpace space) {
  Changes changes(memory.schedule);
  for (const auto& stretch : occupancy.stretches) {
    const Cell& cell = memory.cells[stretch.cell];
    const Allocation& allocation = memory.allocations[cell.allocation];
    const bool table = memory.values[stretch.value].shape.is_tuple();
    if (!allocation.is_temp() || table || allocation.space != space) continue;
    changes.add(stretch, cell.size);
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const std::int64_t change : changes.by_position()) most = std::max(most, live += change);
  return Bytes(most);
}

MemoryTotals sum_totals(const MemoryAssignment& memory, const Occupancy& occupancy) {
  MemoryTotals totals;
  for (const Allocation& allocation : memory.allocations) {
    const bool host = is_host(allocation.space);
    const Bytes size = allocation.size;
    if (!host) {
      totals.total_device += size;
      totals.largest_allocation = std::max(totals.largest_allocation, size);
    }
    if (allocation.parameter) (host ? totals.host_argument : totals.argument) += size;
    if (allocation.parameter && allocation.aliased)
      (host ? totals.host_alias : totals.alias) += size;
    if (allocation.live_out) (host ? totals.host_output : totals.output) += size;
    if (allocation.is_temp()) (host ? totals.host_temp : totals.temp) += size;
  }
  totals.no_fragmentation = totals.total_device;
  for (const MemoryAssignment::Heap& heap : memory.heaps)
    if (!is_host(heap.space))
      totals.no_fragmentation -= heap.size - packed_perfectly(memory, occupancy, heap.space);
  return totals;
}

}  // namespace

std::string_view name_of(BufferClass kind) {
  switch (kind) {
    case BufferClass::kParameter:
      return "parameter";
    case BufferClass::kOutput:
      return "output";
    case BufferClass::kConstant:
      return "constant";
    case BufferClass::kTemporary:
      return "temporary";
  }
  return "";
}

std::optional<std::int64_t> layer_of(std::string_view op_name) {
  for (const std::string_view key : {"layers_", "layer_"}) {
    const std::size_t at = op_name.find(key);
    if (at == std::string_view::npos) continue;
    const char* const digits = op_name.data() + at + key.size();
    std::int64_t layer = 0;
    const auto [end, error] = std::from_chars(digits, op_name.data() + op_name.size(), layer);
    if (error == std::errc() && end != digits) return layer;
  }
  return std::nullopt;
}

std::vector<CurvePoint> live_curve(const MemoryAssignment& memory, MemorySide side) {
  return make_curve(memory, find_occupancy(memory), side);
}

MemoryTotals sum_totals(const MemoryAssignment& memory) {
  return sum_totals(memory, find_occupancy(memory));
}

Bytes host_bytes(const MemoryTotals& totals) {
  return totals.host_temp + totals.host_argument + totals.host_output - totals.host_alias;
}

HostTraffic sum_traffic(const Program& program) {
  HostTraffic traffic;
  for (const auto& [id, transfer, runs] : find_transfers(program)) {
    const bool out = transfer.direction == TransferDirection::kDeviceToHost;
    (out ? traffic.device_to_host : traffic.host_to_device) += transfer.bytes * runs;
    (out ? traffic.offloads : traffic.reloads) += runs;
  }
  return traffic;
}

std::vector<LiveBuffer> list_host_arrays(const Program& program, const MemoryAssignment& memory) {
  std::vector<LiveBuffer> arrays;
  std::vector<bool> listed(memory.cells.size());
  for (const ValueId value : ids(memory.values.values())) {
    const auto cell = memory.cell_of[value];
    if (!cell || listed[cell->index] || on_device(memory, *cell)) continue;
    if (memory.values[value].shape.is_tuple()) continue;
    listed[cell->index] = true;
    arrays.push_back(describe(program, memory, *cell, value));
  }
  std::ranges::stable_sort(arrays, std::ranges::greater{}, &LiveBuffer::bytes);
  return arrays;
}

MemoryReport make_memory_report(const Program& program, const MemoryAssignment& memory) {
  MemoryReport report;
  const Occupancy occupancy = find_occupancy(memory);
  report.totals = sum_totals(memory, occupancy);
  report.traffic = sum_traffic(program);
  report.curve = make_curve(memory, occupancy, MemorySide::kDevice);
  for (const CurvePoint& point : report.curve) {
    if (point.bytes <= report.live_peak) continue;
    report.live_peak = point.bytes;
    report.live_peak_at = point.position;
  }
  const auto position = static_cast<std::size_t>(report.live_peak_at.value());
  if (position < memory.schedule.order.size())
    report.live_peak_instruction = std::string(program[memory.schedule.order[position]].name);
  report.live_at_peak = describe_peak(program, memory, report.live_peak_at);
  return report;
}

}  // namespace spillway
