#include "sim/trace/memory_levels.h"

#include <algorithm>

#include "model/memory/memory_report.h"

namespace spillway {
namespace {

using engine::StepId;

/// By position; the last one is behind the end of the schedule.
std::vector<Bytes> spread(const std::vector<CurvePoint>& curve, const FlatSchedule& schedule) {
  std::vector<Bytes> live(schedule.order.size() + 1);
  auto point = curve.begin();
  Bytes now;
  for (std::size_t position = 0; position < live.size(); ++position) {
    for (; point != curve.end() && point->position.value() <= static_cast<std::int32_t>(position);
         ++point)
      now = point->bytes;
    live[position] = now;
  }
  return live;
}

class LevelFinder {
 public:
  LevelFinder(const Program& program, const MemoryAssignment& memory, const LoweredProgram& lowered)
      : schedule_(memory.schedule),
        lowered_(lowered),
        device_(spread(live_curve(memory, MemorySide::kDevice), schedule_)),
        host_(spread(live_curve(memory, MemorySide::kHost), schedule_)) {
    find_steps();
    leave_out_branches(program);
  }

  MemoryLevels run() const {
    MemoryLevels levels;
    levels.at_step.resize(lowered_.origins.size());
    std::size_t behind = 0;  // the step before
    for (const StepId step : ids(lowered_.origins)) {
      if (lowered_.origins[step].kind == StepOrigin::kLoop) continue;
      const std::size_t here = position_of(step);
      levels.at_step[step] = most_in(std::min(behind, here), here + 1);
      behind = here + 1;
    }
    levels.at_end = {device_.back(), host_.back()};
    return levels;
  }

 private:
  std::size_t position_of(StepId step) const {
    const StepOrigin& origin = lowered_.origins[step];
    const InstructionId id = origin.done.value_or(origin.instruction);
    return static_cast<std::size_t>(
        schedule_.position[id.computation][id.instruction.index].value());
  }

  void find_steps() {
    has_step_.resize(schedule_.order.size());
    for (const StepId step : ids(lowered_.origins))
      if (lowered_.origins[step].kind != StepOrigin::kLoop) has_step_[position_of(step)] = true;
  }

  void leave_out_branches(const Program& program) {
    left_out_.resize(schedule_.order.size());
    for (const InstructionId id : schedule_.order) {
      if (program[id].opcode != Opcode::kConditional) continue;
      for (const ComputationId branch : program[id.computation].called(id.instruction)) {
        const auto [start, end] = schedule_.span[branch];
        const auto taken = has_step_.begin() + end.value();
        if (std::find(has_step_.begin() + start.value(), taken, true) != taken) continue;
        std::fill(left_out_.begin() + start.value(), left_out_.begin() + end.value(), true);
      }
    }
  }

  MemoryLevel most_in(std::size_t first, std::size_t end) const {
    MemoryLevel most;
    for (std::size_t position = first; position < end; ++position) {
      if (left_out_[position]) continue;
      most.device = std::max(most.device, device_[position]);
      most.host = std::max(most.host, host_[position]);
    }
    return most;
  }

  const FlatSchedule& schedule_;
  const LoweredProgram& lowered_;
  std::vector<Bytes> device_, host_;
  std::vector<bool> has_step_, left_out_;  ///< by position
};

}  // namespace

MemoryLevels find_memory_levels(const Program& program, const MemoryAssignment& memory,
                                const LoweredProgram& lowered) {
  return LevelFinder(program, memory, lowered).run();
}

}  // namespace spillway
