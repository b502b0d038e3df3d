// A second opinion on an assignment, by code that knows nothing of heaps.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/memory/assignment.h"

namespace spillway::testing {

/// Two values that lie over one another while both are live, as text; empty when there are none.
/// Values of one cell may share the moment at which one ends and the next begins.
inline std::string find_overlap(const Program& program, const MemoryAssignment& memory) {
  IdVector<AllocationId, std::vector<ValueId>> residents(memory.allocations.size());
  for (const ValueId value : ids(memory.values.values()))
    if (const auto cell = memory.cell_of[value])
      residents[memory.cells[*cell].allocation].push_back(value);
  const auto range = [&](ValueId value) { return memory.liveness.ranges[value]; };
  const auto name = [&](ValueId value) {
    return std::string(program[memory.values[value].defined_at.instruction].name);
  };
  for (auto& values : residents) {
    std::ranges::stable_sort(values, {}, [&](ValueId v) { return range(v).start; });
    std::map<std::int64_t, ValueId> live;  // by offset
    std::multimap<LogicalTime, std::int64_t> ends;
    for (const ValueId value : values) {
      while (!ends.empty() && ends.begin()->first < range(value).start) {
        const std::int64_t offset = ends.begin()->second;
        ends.erase(ends.begin());
        const auto gone = live.find(offset);
        if (gone != live.end() && range(gone->second).end < range(value).start) live.erase(gone);
      }
      const CellId cell_id = *memory.cell_of[value];
      const Cell& cell = memory.cells[cell_id];
      const std::int64_t begin = cell.offset.value();
      const std::int64_t end = begin + cell.size.value();
      auto other = live.lower_bound(begin);
      if (other != live.begin()) --other;
      for (; other != live.end() && other->first < end; ++other) {
        const Cell& theirs = memory.cells[*memory.cell_of[other->second]];
        if (theirs.offset.value() + theirs.size.value() <= begin) continue;
        const bool follows = memory.cell_of[other->second] == cell_id &&
                             range(other->second).end <= range(value).start;
        if (!follows) return name(other->second) + " and " + name(value);
      }
      live.insert_or_assign(begin, value);
      ends.emplace(range(value).end, begin);
    }
  }
  return "";
}

/// An instruction that reads what is not there (any more), as text; empty when there is none.
inline std::string find_lost_read(const Program& program, const MemoryAssignment& memory) {
  for (const InstructionId id : memory.schedule.order) {
    const Opcode opcode = program[id].opcode;
    // What a loop or an async start runs is in the order itself.
    if (is_free(program[id]) || opcode == Opcode::kWhile || opcode == Opcode::kAsyncStart) continue;
    const LogicalTime now = memory.schedule.position[id.computation][id.instruction.index];
    for (const Operand& operand : program[id.computation].operands(id.instruction)) {
      const ValueId value = memory.values.at(id.computation, operand);
      const LiveRange& range = memory.liveness.ranges[value];
      const std::string what = std::string(program[id].name) + " reads " +
                               std::string(program[id.computation][operand.instruction].name);
      if (now < range.start || range.end < now) return what;
      if (!memory.cell_of[value] && memory.values[value].shape.bytes() > Bytes(0))
        return what + ", which lies nowhere";
    }
  }
  return "";
}

}  // namespace spillway::testing
