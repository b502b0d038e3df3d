#include "sim/explain/edit_steps.h"

namespace spillway {
namespace {

using engine::LoopStep;
using engine::StartStep;
using engine::Step;
using engine::StepId;
using engine::WaitStep;

class Editor {
 public:
  Editor(const engine::EngineProgram& program, const StepEdits& edits)
      : program_(program), edits_(edits) {
    out_.program = program;
    out_.program.steps = {};
  }

  EditedSteps run() {
    copy(StepId(0), StepId(program_.steps.size()), false);
    return std::move(out_);
  }

 private:
  void copy(StepId first, StepId end, bool last_iteration) {
    for (StepId step = first; step < end;) {
      add(edits_.before, step, last_iteration);
      const auto* loop = std::get_if<LoopStep>(&program_.steps[step]);
      const StepId next = loop != nullptr ? loop->end : StepId(step.index + 1);
      if (loop != nullptr)
        copy_loop(step, *loop);
      else if (!edits_.removed.contains(step))
        push(program_.steps[step], step);
      add(edits_.after, step, last_iteration);
      step = next;
    }
  }

  void copy_loop(StepId id, const LoopStep& loop) {
    const StepId body(id.index + 1);
    const bool peeled = edits_.peeled == id && loop.trips > 0;
    const StepId copied = push(LoopStep{loop.trips - (peeled ? 1 : 0), StepId()}, id);
    copy(body, loop.end, false);
    std::get<LoopStep>(out_.program.steps[copied]).end = StepId(out_.program.steps.size());
    if (peeled) copy(body, loop.end, true);
  }

  void add(const std::map<StepId, std::vector<StepEdits::Added>>& where, StepId at,
           bool last_iteration) {
    const auto here = where.find(at);
    if (here == where.end()) return;
    for (const StepEdits::Added& added : here->second) {
      if (added.not_in_last && last_iteration) continue;
      Step step = program_.steps[added.copy_of];
      if (added.back) std::get<WaitStep>(step).back = *added.back;
      if (added.takes_no_time) std::get<StartStep>(step).task = add_task(out_.program, {}, {});
      push(step, added.copy_of);
    }
  }

  StepId push(const Step& step, StepId original) {
    out_.original.push(original);
    return out_.program.steps.push(step);
  }

  const engine::EngineProgram& program_;
  const StepEdits& edits_;
  EditedSteps out_;
};

}  // namespace

EditedSteps edit_steps(const engine::EngineProgram& program, const StepEdits& edits) {
  return Editor(program, edits).run();
}

}  // namespace spillway
