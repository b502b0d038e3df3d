#include "sim/schedule/reorder.h"

#include "sim/rewrite/open_collectives.h"
#include "sim/schedule/recompute_fences.h"

namespace spillway {
namespace {

/// The given order, in which a collective that was opened stands twice.
Schedule open_schedule(const Program& opened, const Program& program, const Schedule& given) {
  Schedule schedule;
  schedule.order.resize(opened.computations.size());
  for (const ComputationId id : ids(program.computations)) {
    if (given.order[id].empty()) continue;
    // Numbers of instructions shift by the starts that stand before them.
    std::vector<std::uint32_t> shift(program[id].size());
    std::uint32_t starts = 0;
    const bool is_open = opened[id].size() != program[id].size();
    for (const InstructionIndex i : program[id].instructions()) {
      if (is_open && is_collective(program[id][i].opcode)) ++starts;
      shift[i.index] = starts;
    }
    for (const InstructionIndex i : given.order[id]) {
      const InstructionIndex now(i.index + shift[i.index]);
      if (is_open && is_collective(program[id][i].opcode))
        schedule.order[id].push_back(InstructionIndex(now.index - 1u));
      schedule.order[id].push_back(now);
    }
  }
  return schedule;
}

}  // namespace

Reordered reorder(const Program& program, const Schedule& given, const HardwareProfile& profile,
                  const XlaOrderOptions& options) {
  const Program opened = open_collectives(program);
  const Schedule order = open_schedule(opened, program, given);
  const MemoryAssignment memory = assign_memory(opened, order);
  auto precedences = find_precedences(opened, memory);
  const auto fences = find_recompute_fences(opened, memory);
  for (const ComputationId id : ids(precedences))
    precedences[id].insert(precedences[id].end(), fences[id].begin(), fences[id].end());
  Reordered result;
  result.program = with_control_dependencies(opened, precedences);
  result.order =
      find_xla_order(result.program, assign_memory(result.program, order), profile, options);
  return result;
}

}  // namespace spillway
