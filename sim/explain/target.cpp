#include "sim/explain/target.h"

#include <algorithm>

namespace spillway {

using engine::StepId;

Target find_target(const LoweredProgram& lowered, const engine::EngineResult& run, StepId start) {
  const auto& steps = lowered.program.steps;
  const auto* const handed = std::get_if<engine::StartStep>(&steps[start]);
  if (handed == nullptr) return {start, {start}, {}, {}};
  Target target{start, {}, {}, {}};
  for (const StepId step : ids(steps)) {
    const auto* const other = std::get_if<engine::StartStep>(&steps[step]);
    const auto* const wait = std::get_if<engine::WaitStep>(&steps[step]);
    if (other != nullptr && other->slot == handed->slot) target.starts.push_back(step);
    if (wait != nullptr && wait->slot == handed->slot) target.waits.push_back(step);
  }
  const auto runs = [&run](StepId step) { return run.steps[step].count; };
  target.start = *std::ranges::max_element(target.starts, {}, runs);
  if (!target.waits.empty()) target.wait = *std::ranges::max_element(target.waits, {}, runs);
  return target;
}

Seconds exposed_of(const Target& target, const engine::EngineResult& run) {
  SimTime exposed;
  for (const StepId wait : target.waits) exposed += run.steps[wait].stalled;
  if (target.waits.empty()) exposed = run.steps[target.start].busy;
  return to_seconds(exposed);
}

}  // namespace spillway
