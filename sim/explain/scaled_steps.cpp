#include "sim/explain/scaled_steps.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/task_table.h"

namespace spillway {
namespace {

using engine::EngineProgram;
using engine::StepId;

std::int64_t scaled(std::int64_t value, double factor) {
  return std::llround(static_cast<double>(value) * factor);
}

/// The task that a step runs or starts; null for waits and loops.
engine::Task* task_of(EngineProgram& program, StepId step) {
  if (const auto* start = std::get_if<engine::StartStep>(&program.steps[step]))
    return &program.tasks[start->task];
  if (const auto* run = std::get_if<engine::RunStep>(&program.steps[step]))
    return &program.tasks[run->task];
  return nullptr;
}

}  // namespace

EngineProgram with_faster_link(const LoweredProgram& lowered, double factor) {
  EngineProgram program = lowered.program;
  const MachineResources& machine = lowered.resources;
  for (const engine::ResourceId resource :
       {machine.device_to_host, machine.host_to_device, machine.both_directions, machine.host_read,
        machine.host_write, machine.host_memory})
    program.resources[resource].capacity =
        std::max<std::int64_t>(1, scaled(program.resources[resource].capacity, factor));
  return program;
}

EngineProgram with_faster_fabric(const LoweredProgram& lowered, double factor) {
  EngineProgram program = lowered.program;
  const MachineResources& machine = lowered.resources;
  // What a collective takes of these lasts as long as it does.
  const auto lasts = [&](engine::ResourceId resource) {
    return resource == machine.sms || resource == machine.fabric || resource == machine.network;
  };
  for (const StepId step : ids(lowered.origins)) {
    if (lowered.origins[step].kind != StepOrigin::kCollective) continue;
    engine::Task& task = *task_of(program, step);
    task.duration = SimTime(scaled(task.duration.value(), 1 / factor));
    for (std::uint32_t k = task.first_demand; k < task.end_demand; ++k)
      if (lasts(program.demands[k].resource))
        program.demands[k].amount = scaled(program.demands[k].amount, 1 / factor);
  }
  return program;
}

EngineProgram with_more_kernels(const LoweredProgram& lowered, StepId first, StepId end,
                                double factor) {
  EngineProgram program = lowered.program;
  for (StepId step = first; step < end; step = StepId(step.index + 1)) {
    const bool on_main = std::holds_alternative<engine::RunStep>(program.steps[step]);
    if (!on_main || lowered.origins[step].kind != StepOrigin::kKernel) continue;
    engine::Task& task = *task_of(program, step);
    task.duration = SimTime(scaled(task.duration.value(), factor));
    for (std::uint32_t k = task.first_demand; k < task.end_demand; ++k)
      program.demands[k].amount = scaled(program.demands[k].amount, factor);
  }
  return program;
}

EngineProgram with_slower_copies(const LoweredProgram& lowered, const std::vector<StepId>& starts,
                                 double factor) {
  EngineProgram program = lowered.program;
  const engine::TaskTable tasks(lowered.program);
  for (const StepId start : starts) {
    const engine::TaskId task = std::get<engine::StartStep>(program.steps[start]).task;
    program.tasks[task].duration = SimTime(scaled(tasks[task].alone.value(), factor));
  }
  return program;
}

}  // namespace spillway
