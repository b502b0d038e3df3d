// Who wants to know what happens while it happens: timelines, memory curves, counters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/base/units.h"
#include "sim/engine/program.h"

namespace spillway::engine {

struct TaskStarted {
  StepId step;
  TaskId task;
  StreamId stream;
  SimTime ready;  ///< could have started, had its stream been free
  SimTime at;
};

struct TaskFinished {
  StepId step;
  TaskId task;
  StreamId stream;
  SimTime started;
  SimTime at;
};

/// The main stream was blocked from `from` to `to`.
struct Waited {
  StepId step;
  SlotId slot;
  SimTime from;
  SimTime to;
};

struct RunningTask {
  StepId step;
  TaskId task;
  StreamId stream;
  double speed = 1;                 ///< of its full speed; exact
  std::optional<ResourceId> limit;  ///< what holds it below 1
};

/// What was reported during the last `iterations` iterations of the loop happens `times` more, each
/// time `period` later.
struct Repeated {
  StepId loop;
  SimTime start;  ///< of the first of those iterations
  SimTime period;
  std::int64_t iterations = 0;  ///< one period
  std::int64_t times = 0;
};

/// Calls come in order of time; what is simultaneous comes in a fixed order. A loop that repeats
/// itself is reported once:
///
///   on_iteration_began   started, finished, waited, …   on_repeated({start, period, 1, times = 3})
///   start |----------- period ------------|- as before -|- as before -|- as before -| what follows
///
/// What follows on_repeated is `times` × `period` later than it would be without. Inner loops may
/// repeat themselves inside what an outer loop repeats.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_task_started(const TaskStarted&) {}
  virtual void on_task_finished(const TaskFinished&) {}
  virtual void on_waited(const Waited&) {}
  /// The main stream took a step that is no loop: it handed over the step's task, or got past the
  /// wait. If that took time, on_waited has told just before.
  virtual void on_step_taken(StepId /*step*/, SimTime /*at*/) {}
  /// The tasks that are past their latency, and how fast each is from `at` on.
  virtual void on_rates_changed(SimTime /*at*/, std::span<const RunningTask>) {}
  virtual void on_iteration_began(StepId /*loop*/, SimTime /*at*/) {}
  virtual void on_repeated(const Repeated&) {}
};

}  // namespace spillway::engine
