#include "sim/main_work.h"

namespace spillway {

using engine::StepId;

MainWork::MainWork(const LoweredProgram& lowered, const engine::EngineResult& run) {
  double sum = 0;
  before_.reserve(lowered.origins.size() + 1);
  for (const StepId step : ids(lowered.origins)) {
    before_.push_back(sum);
    const StepOrigin& origin = lowered.origins[step];
    const engine::StepStats& stats = run.steps[step];
    const bool on_main =
        origin.kind == StepOrigin::kKernel ||
        (origin.kind == StepOrigin::kCollective && origin.stream.pool == StreamPool::kMain);
    if (on_main && stats.count > 0)
      sum += to_seconds(stats.busy).value() / static_cast<double>(stats.count);
  }
  before_.push_back(sum);
}

Seconds MainWork::between(StepId from, StepId to) const {
  if (to.index <= from.index) return Seconds(0);
  return Seconds(before_[to.index] - before_[from.index]);
}

}  // namespace spillway
