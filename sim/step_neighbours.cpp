#include "sim/step_neighbours.h"

#include <algorithm>

namespace spillway {

using engine::StepId;

StepNeighbours::StepNeighbours(const Program& program, const Lifetimes& memory,
                               const LoweredProgram& lowered)
    : program_(program),
      memory_(memory),
      lowered_(lowered),
      first_of_(lowered.origins.size()),
      behind_of_(lowered.origins.size()) {
  const auto& origins = lowered_.origins;
  for (const StepId step : ids(origins)) {
    const StepId before(step.index > 0 ? step.index - 1 : 0);
    const bool goes_on = step != before && belongs(before, origins[step].instruction.computation);
    first_of_[step] = goes_on ? first_of_[before] : step;
    if (!is_work(step)) continue;
    const InstructionId id = origins[step].instruction;
    makers_.emplace_back(id, step);
    for (const Operand& operand : program_[id.computation].operands(id.instruction))
      readers_.emplace_back(memory_.values.at(id.computation, operand), step);
  }
  for (std::size_t k = origins.size(); k-- > 0;) {
    const bool goes_on = k + 1 < origins.size() &&
                         belongs(StepId(k + 1), origins[StepId(k)].instruction.computation);
    behind_of_[StepId(k)] = goes_on ? behind_of_[StepId(k + 1)] : StepId(k + 1);
  }
  std::ranges::sort(readers_);
  std::ranges::sort(makers_);
}

bool StepNeighbours::is_work(StepId step) const {
  const StepOrigin::Kind kind = lowered_.origins[step].kind;
  return kind != StepOrigin::kWait && kind != StepOrigin::kLoop;
}

bool StepNeighbours::belongs(StepId step, ComputationId computation) const {
  const StepOrigin& origin = lowered_.origins[step];
  return origin.kind != StepOrigin::kLoop && origin.instruction.computation == computation;
}

StepId StepNeighbours::first_reader(StepId wait, ComputationId computation, ValueId arrived) const {
  const StepId next(wait.index + 1);
  if (next.index >= lowered_.origins.size() || !belongs(next, computation)) return next;
  const auto reader = std::ranges::lower_bound(readers_, std::pair(arrived, next));
  const bool found = reader != readers_.end() && reader->first == arrived;
  return found ? std::min(reader->second, behind_of_[next]) : behind_of_[next];
}

StepId StepNeighbours::behind_producer(StepId start) const {
  const InstructionId id = lowered_.origins[start].instruction;
  if (start.index == 0 || !belongs(StepId(start.index - 1), id.computation)) return start;
  StepId latest = first_of_[StepId(start.index - 1)];
  for (const Operand& operand : program_[id.computation].operands(id.instruction)) {
    const ValueId value = memory_.values.at(id.computation, operand);
    const InstructionId maker = memory_.values[value].defined_at.instruction;
    const auto behind = std::ranges::lower_bound(makers_, std::pair(maker, start));
    if (behind == makers_.begin() || std::prev(behind)->first != maker) continue;
    latest = std::max(latest, StepId(std::prev(behind)->second.index + 1));
  }
  return latest;
}

}  // namespace spillway
