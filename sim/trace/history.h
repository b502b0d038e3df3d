// A chronicle put together: each task's run from its start to its end, what the main stream waited
// for, the iterations of loops, and what lay in memory meanwhile.
#pragma once

#include <optional>
#include <vector>

#include "sim/lowering/lower.h"
#include "sim/trace/chronicle.h"
#include "sim/trace/memory_levels.h"

namespace spillway {

/// An index into History::runs.
using RunId = Id<struct TaskRunTag>;

/// One execution of a kernel, a copy or a collective.
struct TaskRun {
  engine::StepId step;
  SimTime taken;                 ///< the main stream handed it over
  SimTime started, finished;     ///< on its stream, its latency included
  std::int64_t iteration = 0;    ///< of the innermost loop around it
  std::int64_t entry = 0;        ///< how often that loop had been entered before
  std::optional<RunId> read_by;  ///< of a copy: the first that reads what it brought
};

/// The main stream at a wait: `from` and `to` are the same where it was not blocked.
struct WaitSpan {
  engine::StepId step;
  RunId awaited;
  SimTime from, to;
  std::int64_t iteration = 0;  ///< of the innermost loop around the wait
};

/// An iteration of a loop, or iterations that the chronicle leaves out.
struct LoopSpan {
  engine::StepId loop;
  std::int64_t iteration = 0;
  std::int64_t left_out = 0;  ///< so many from `iteration` on; 0: it is all there
  SimTime from, to;
};

struct History {
  IdVector<RunId, TaskRun> runs;  ///< in the order of `taken`
  std::vector<WaitSpan> waits;
  std::vector<LoopSpan> loops;  ///< by `from`, outer loops first
  struct Level {
    SimTime at;
    MemoryLevel live;
  };
  std::vector<Level> levels;  ///< changes only
  struct RateChange {
    SimTime at;
    Rates rates;
  };
  std::vector<RateChange> rates;  ///< changes only
  SimTime end;                    ///< of the step
};

/// `readers` says of each wait which step reads first what it waited for, where one does.
History make_history(const LoweredProgram& lowered, const Chronicle& chronicle,
                     const IdVector<engine::StepId, std::optional<engine::StepId>>& readers,
                     const MemoryLevels& levels, SimTime end);

/// The innermost loop around each step, where there is one.
IdVector<engine::StepId, std::optional<engine::StepId>> loops_around(
    const engine::EngineProgram& program);

}  // namespace spillway
