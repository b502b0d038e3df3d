#include "sim/trace/history.h"

#include <algorithm>

namespace spillway {
namespace {

using engine::SlotId;
using engine::StepId;

class HistoryMaker {
 public:
  HistoryMaker(const LoweredProgram& lowered, const Chronicle& chronicle,
               const IdVector<StepId, std::optional<StepId>>& readers, const MemoryLevels& levels)
      : program_(lowered.program),
        chronicle_(chronicle),
        readers_(readers),
        levels_(levels),
        loop_of_(loops_around(lowered.program)),
        runs_of_(program_.steps.size()),
        awaiting_reader_(program_.steps.size()),
        loops_(program_.steps.size()),
        started_in_(program_.slot_count) {}

  History run(SimTime end) {
    for (const Happening& happening : chronicle_.happenings) add(happening);
    leave_loops_but({}, end);
    std::ranges::stable_sort(out_.loops, [](const LoopSpan& a, const LoopSpan& b) {
      return std::pair(a.from, a.loop) < std::pair(b.from, b.loop);
    });
    add_level(levels_.at_end, end);
    out_.end = end;
    return std::move(out_);
  }

 private:
  /// Where a loop is, and how often it has been entered.
  struct Loop {
    std::int64_t iteration = 0, entries = 0;
  };
  struct RunsOfStep {
    std::vector<RunId> all;
    std::size_t finished = 0;  ///< so many of them
  };
  struct OpenIteration {
    StepId loop;
    std::int64_t iteration = 0;
    SimTime from;
  };

  void add(const Happening& happening) {
    switch (happening.kind) {
      case Happening::Kind::kTaken:
        return take(happening.step, happening.at);
      case Happening::Kind::kFinished:
        return finish(happening);
      case Happening::Kind::kWaited:
        add_level(levels_.at_step[happening.step], happening.from);
        blocked_since_ = happening.from;
        return;
      case Happening::Kind::kIteration:
        return begin_iteration(happening);
      case Happening::Kind::kRates:
        return add_rates(chronicle_.rates[static_cast<std::size_t>(happening.number)],
                         happening.at);
      case Happening::Kind::kLeftOut:
        return leave_out(happening);
    }
  }

  void take(StepId id, SimTime at) {
    leave_loops_but(id, at);
    add_level(levels_.at_step[id], at);
    const engine::Step& step = program_.steps[id];
    if (std::holds_alternative<engine::WaitStep>(step)) {
      const SimTime from = blocked_since_.value_or(at);
      blocked_since_.reset();
      const auto awaited = awaited_at(id);
      if (!awaited) return;
      const auto loop = loop_of_[id];
      out_.waits.push_back({id, *awaited, from, at, loop ? loops_[*loop].iteration : 0});
      if (readers_[id]) awaiting_reader_[*readers_[id]].push_back(*awaited);
      return;
    }
    TaskRun run{.step = id, .taken = at, .started = at, .finished = at, .read_by = {}};
    if (const auto loop = loop_of_[id]) {
      run.iteration = loops_[*loop].iteration;
      run.entry = loops_[*loop].entries - 1;
    }
    const RunId made = out_.runs.push(run);
    runs_of_[id].all.push_back(made);
    for (const RunId copy : awaiting_reader_[id]) out_.runs[copy].read_by = made;
    awaiting_reader_[id].clear();
    if (const auto* start = std::get_if<engine::StartStep>(&step))
      started_in_[start->slot.index].push_back(made);
  }

  /// Tasks of one step end in the order in which they were handed over.
  void finish(const Happening& happening) {
    auto& [runs, finished] = runs_of_[happening.step];
    check(finished < runs.size(), "a task ends that was never handed over");
    TaskRun& run = out_.runs[runs[finished++]];
    run.started = happening.from;
    run.finished = happening.at;
  }

  std::optional<RunId> awaited_at(StepId wait) const {
    const auto& step = std::get<engine::WaitStep>(program_.steps[wait]);
    const auto& started = started_in_[step.slot.index];
    if (started.size() <= step.back) return std::nullopt;
    return started[started.size() - 1 - step.back];
  }

  void begin_iteration(const Happening& happening) {
    Loop& loop = loops_[happening.step];
    if (happening.number == 0) ++loop.entries;
    loop.iteration = happening.number;
    leave_loops_but(happening.step, happening.at);
    if (!open_.empty() && open_.back().loop == happening.step) close_iteration(happening.at);
    open_.push_back({happening.step, happening.number, happening.at});
  }

  /// What is under way belongs to the last of the iterations that are left out.
  void leave_out(const Happening& happening) {
    leave_loops_but(happening.step, happening.from);
    const bool open = !open_.empty() && open_.back().loop == happening.step;
    if (open) close_iteration(happening.from);
    const std::int64_t next = loops_[happening.step].iteration + 1;
    out_.loops.push_back({happening.step, next, happening.number, happening.from, happening.at});
    const StepId end = std::get<engine::LoopStep>(program_.steps[happening.step]).end;
    for (StepId step(happening.step.index + 1); step < end; step = StepId(step.index + 1)) {
      if (loop_of_[step] != happening.step) continue;
      const auto& [runs, finished] = runs_of_[step];
      for (std::size_t k = finished; k < runs.size(); ++k)
        out_.runs[runs[k]].iteration += happening.number;
    }
  }

  /// Closes the loops that the main stream has left when it gets to `next`, all without one.
  void leave_loops_but(std::optional<StepId> next, SimTime at) {
    while (!open_.empty()) {
      const StepId loop = open_.back().loop;
      const StepId end = std::get<engine::LoopStep>(program_.steps[loop]).end;
      if (next && loop <= *next && *next < end) return;
      close_iteration(at);
    }
  }

  void close_iteration(SimTime at) {
    const OpenIteration& open = open_.back();
    out_.loops.push_back({open.loop, open.iteration, 0, open.from, at});
    open_.pop_back();
  }

  void add_rates(const Rates& rates, SimTime at) {
    if (out_.rates.empty() || out_.rates.back().rates != rates) out_.rates.push_back({at, rates});
  }

  void add_level(const MemoryLevel& level, SimTime at) {
    if (out_.levels.empty() || out_.levels.back().live != level) out_.levels.push_back({at, level});
  }

  const engine::EngineProgram& program_;
  const Chronicle& chronicle_;
  const IdVector<StepId, std::optional<StepId>>& readers_;
  const MemoryLevels& levels_;
  IdVector<StepId, std::optional<StepId>> loop_of_;
  IdVector<StepId, RunsOfStep> runs_of_;
  IdVector<StepId, std::vector<RunId>> awaiting_reader_;  ///< copies that a step reads next
  IdVector<StepId, Loop> loops_;
  std::vector<std::vector<RunId>> started_in_;  ///< by slot
  std::optional<SimTime> blocked_since_;        ///< at the wait that is taken next
  std::vector<OpenIteration> open_;             ///< outermost first
  History out_;
};

}  // namespace

History make_history(const LoweredProgram& lowered, const Chronicle& chronicle,
                     const IdVector<StepId, std::optional<StepId>>& readers,
                     const MemoryLevels& levels, SimTime end) {
  return HistoryMaker(lowered, chronicle, readers, levels).run(end);
}

IdVector<StepId, std::optional<StepId>> loops_around(const engine::EngineProgram& program) {
  IdVector<StepId, std::optional<StepId>> around(program.steps.size());
  std::vector<StepId> open;
  for (const StepId step : ids(program.steps)) {
    while (!open.empty() && std::get<engine::LoopStep>(program.steps[open.back()]).end <= step)
      open.pop_back();
    if (!open.empty()) around[step] = open.back();
    if (std::holds_alternative<engine::LoopStep>(program.steps[step])) open.push_back(step);
  }
  return around;
}

}  // namespace spillway
