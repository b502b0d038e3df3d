#include "sim/prepared_step.h"

namespace spillway {
namespace {

using engine::EngineResult;
using engine::StepId;

constexpr const char* kTooLongAdvice =
    "no training step does: is a rate of the machine far too low, or a trip count damaged?";

/// The instruction that a fault is about, where it is about one.
std::optional<InstructionId> find_culprit(const LoweredProgram& lowered,
                                          const engine::ProgramFault& fault) {
  for (const StepId step : ids(lowered.origins)) {
    const engine::Step& it = lowered.program.steps[step];
    const auto* run = std::get_if<engine::RunStep>(&it);
    const auto* start = std::get_if<engine::StartStep>(&it);
    const std::optional<engine::TaskId> task = run     ? std::optional(run->task)
                                               : start ? std::optional(start->task)
                                                       : std::nullopt;
    if (step == fault.step || (task && task == fault.task))
      return lowered.origins[step].instruction;
  }
  return std::nullopt;
}

Error error_of(const Program& program, const LoweredProgram& lowered,
               const engine::ProgramFault& fault) {
  const auto culprit = find_culprit(lowered, fault);
  const std::string who = culprit ? quoted(program[*culprit].name) : "the step";
  return error_in_file(program.path, who + " cannot be simulated: " + fault.text,
                       fault.task ? kTooLongAdvice : "");
}

}  // namespace

Result<PreparedStep> prepare_step(const Program& program, const Schedule& schedule,
                                  const MemoryAssignment& memory, const HardwareProfile& profile,
                                  const Topology& topology, const CostTable* base) {
  PreparedStep step;
  step.costs = base != nullptr ? costs(program, profile, topology, *base)
                               : costs(program, profile, topology);
  step.copies = copy_streams_of(program);
  step.streams = assign_streams(program, step.copies);
  step.lowered = lower(program, schedule, memory, step.costs, step.streams, profile, topology);
  if (const auto fault = engine::find_fault(step.lowered.program))
    return error_of(program, step.lowered, *fault);
  return step;
}

Result<EngineResult> run_step(const Program& program, const PreparedStep& prepared,
                              const engine::EngineOptions& options, engine::Listener* listener) {
  Result<EngineResult> finished = engine::run(prepared.lowered.program, options, listener);
  if (!finished.ok())
    return error_in_file(program.path, "the step " + finished.error().text, kTooLongAdvice);
  return finished;
}

}  // namespace spillway
