#include "sim/schedule/reorder.h"

#include <map>

#include "model/program/call_graph.h"
#include "sim/rewrite/copy_carries.h"
#include "sim/rewrite/in_order.h"
#include "sim/rewrite/open_collectives.h"
#include "sim/schedule/drop_copies.h"
#include "sim/schedule/recompute_fences.h"

namespace spillway {
namespace {

/// The given order with what was added where it stands in the text: right in front of what follows.
Schedule order_with_additions(const Program& added, const Program& program, const Schedule& given) {
  Schedule schedule;
  schedule.order.resize(added.computations.size());
  for (const ComputationId id : ids(program.computations)) {
    if (given.order[id].empty()) continue;
    if (added.computations[id] == program.computations[id]) {
      schedule.order[id] = given.order[id];
      continue;
    }
    std::map<std::string_view, InstructionIndex> before;
    for (const InstructionIndex i : program[id].instructions()) before[program[id][i].name] = i;
    std::map<InstructionIndex, std::vector<InstructionIndex>> now;  // by what they were
    std::vector<InstructionIndex> waiting;
    for (const InstructionIndex i : added[id].instructions()) {
      waiting.push_back(i);
      const auto found = before.find(added[id][i].name);
      if (found == before.end()) continue;
      now[found->second] = std::move(waiting);
      waiting.clear();
    }
    for (const InstructionIndex i : given.order[id])
      schedule.order[id].insert(schedule.order[id].end(), now[i].begin(), now[i].end());
  }
  return schedule;
}

}  // namespace

Reordered reorder(const Program& program, const Schedule& given, const HardwareProfile& profile,
                  const XlaOrderOptions& options) {
  const Program opened = copy_carries(open_collectives(program));
  const Schedule order = order_with_additions(opened, program, given);
  const Lifetimes memory = find_lifetimes(opened, order);
  const auto precedences = find_precedences(opened, memory);
  const Program fenced = with_control_dependencies(opened, find_recompute_fences(opened, memory));
  Reordered result;
  // To wait for more changes neither values nor, in the given order, when they are live.
  result.order = find_xla_order(fenced, memory, profile, options, precedences);
  result.program =
      drop_copies(with_control_dependencies(fenced, precedences), result.order.schedule);
  return result;
}

Program reorder_changed(const Program& rewritten, const Program& original,
                        const HardwareProfile& profile, const XlaOrderOptions& options) {
  const Schedule given = text_schedule(rewritten).value();
  const Reordered reordered = reorder(rewritten, given, profile, options);
  const Multiplicity reached = multiplicity(original, is_control_flow);
  Program result = in_order(reordered.program, reordered.order.schedule);
  for (const ComputationId id : ids(original.computations)) {
    const bool changed = rewritten.computations[id] != original.computations[id];
    if (!changed || reached.runs[id] == 0) result.computations[id] = rewritten.computations[id];
  }
  return result;
}

}  // namespace spillway
