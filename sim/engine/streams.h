// What runs on the streams, how far it is, and when the next thing ends. Streams are FIFO: a task
// starts when it is ready and the one in front of it has finished.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/engine/fifo.h"
#include "sim/engine/ledger.h"
#include "sim/engine/listener.h"
#include "sim/engine/sharing.h"
#include "sim/engine/slots.h"
#include "sim/engine/task_table.h"

namespace spillway::engine {

/// One execution of a task.
struct Job {
  StepId step;
  TaskId task;
  SimTime ready;
  std::optional<Handle> handle{};  ///< of what was started; absent for what runs on the main stream
};

class Streams {
 public:
  Streams(const EngineProgram& program, const TaskTable& tasks, Slots& slots, Ledger& ledger,
          Listener* listener);

  /// Hands a job, ready now, to a stream.
  void enqueue(StreamId stream, const Job& job, SimTime now);
  bool idle(StreamId stream) const { return lanes_[stream].phase == Phase::kIdle; }

  /// Divides the resources among those that work now. To be called before time moves on.
  void update_speeds(SimTime now);
  /// When the next latency or task ends; kNever when nothing runs.
  SimTime next_event() const;
  /// Ends what ends at `now`, and starts what waited for it.
  void end_due(SimTime now);

  /// Charges `time` of a blocked main stream to what an unfinished instance is doing.
  void charge(StepId wait, const Instance& awaited, SimTime time) const;

  /// Everything that the future depends on, relative to `now`, appended as numbers: two moments
  /// with equal numbers have equal futures. The main stream must be idle.
  void append_state(SimTime now, std::vector<std::int64_t>& words) const;
  /// Jobs that run or wait for their turn.
  std::size_t in_flight() const { return in_flight_; }
  /// Moves all that runs or waits into the future, as if it had started `by` later.
  void shift(SimTime by);

 private:
  enum class Phase : std::uint8_t { kIdle, kLatency, kWork };
  struct Lane {
    Phase phase = Phase::kIdle;
    Job job;
    SimTime started;
    SimTime ends = kNever;  // of the latency or of the work; kNever until the speed is known
    SimTime remaining;      // work, in picoseconds at full speed, as of `divided`
    SimTime divided;        // when `speed` was last set
    Fraction speed;         // zero until it is first set
    std::optional<ResourceId> limit;
    Fifo<Job> queue;
  };

  void begin(StreamId stream, const Job& job, SimTime now);
  void begin_work(Lane& lane, SimTime now);
  void finish(StreamId stream, SimTime now);
  void set_speed(Lane& lane, Fraction speed, std::optional<ResourceId> limit, SimTime now);
  void report_speeds(SimTime now);
  void append_job(const Job& job, SimTime now, std::vector<std::int64_t>& words) const;

  const TaskTable& tasks_;
  Slots& slots_;
  Ledger& ledger_;
  Listener* listener_;
  IdVector<StreamId, Lane> lanes_;
  std::vector<StreamId> active_;  // streams that are not idle, by when their task started
  Sharing sharing_;
  std::vector<Contender> contenders_;  // scratch, kept for its memory
  std::vector<RunningTask> running_;   // scratch
  std::size_t in_flight_ = 0;
  bool speeds_stale_ = false;    // who works has changed since the speeds were set
  bool were_contended_ = false;  // some speed may be below full
};

}  // namespace spillway::engine
