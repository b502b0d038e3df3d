// What running a program gives: when it was over, and where the time went. All numbers are exact
// integers: the same on every machine, and the same whether loops were extended or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "sim/engine/program.h"

namespace spillway::engine {

/// The totals of one step over all its executions. What a kind of step does not have stays zero.
///
///   start            |ready     |started            |finished
///   main stream  ----S----------------------W------------)--------
///   other stream     |- queued -|------ busy ------------)
///                                           |-- stalled -)  of the wait
struct StepStats {
  std::int64_t count = 0;  ///< run, start: tasks finished; wait: times passed; loop: iterations
  SimTime busy;            ///< run, start: from started to finished; loop: from entered to left
  SimTime alone;           ///< run, start: what `busy` would be if nothing else ran
  SimTime contended;       ///< run, start: part of `busy` in which it ran below full speed
  SimTime queued;          ///< start: ready to run, but behind another task of its stream
  SimTime stalled;         ///< wait: the main stream was blocked here

  friend bool operator==(const StepStats&, const StepStats&) = default;
};

/// What the awaited task was doing while the main stream was blocked.
enum class StallCause : std::uint8_t {
  kQueued,     ///< it stood behind another task in its stream
  kLatency,    ///< it had started, its latency was not over
  kContended,  ///< it ran below full speed, because of a resource
  kFullSpeed,  ///< it ran as fast as it can: started too late, or waited for too early
};

/// A part of what a wait stalled. The shares of a wait add up to its `stalled`.
struct StallShare {
  StepId wait;
  StallCause cause = StallCause::kFullSpeed;
  std::optional<StepId> behind{};        ///< kQueued: the start step of the task in front
  std::optional<ResourceId> resource{};  ///< kContended: what held it below full speed
  SimTime time{};

  friend bool operator==(const StallShare&, const StallShare&) = default;
};

struct StreamStats {
  std::int64_t tasks = 0;
  SimTime busy;     ///< a task had started and not finished
  SimTime latency;  ///< part of `busy` that was latency

  friend bool operator==(const StreamStats&, const StreamStats&) = default;
};

struct ResourceStats {
  std::int64_t moved = 0;  ///< units: the integral of use over time
  SimTime busy;            ///< at least one task was using it
  SimTime contended;       ///< part of `busy` in which it held a task below full speed

  friend bool operator==(const ResourceStats&, const ResourceStats&) = default;
};

/// What the run took, as opposed to what it found.
struct Effort {
  std::int64_t events = 0;               ///< moments at which something ended
  std::int64_t iterations = 0;           ///< of loops, simulated
  std::int64_t repeated_iterations = 0;  ///< of loops, known from a period (of outer loops only)
};

struct EngineResult {
  SimTime makespan;  ///< everything has finished
  SimTime main_end;  ///< the main stream has passed its last step: its `busy` and all `stalled`
  IdVector<StepId, StepStats> steps;
  std::vector<StallShare> stalls;  ///< by wait; within a wait by first occurrence
  IdVector<StreamId, StreamStats> streams;
  IdVector<ResourceId, ResourceStats> resources;
  Effort effort;

  /// The shares of one wait.
  std::span<const StallShare> stalls_at(StepId wait) const;
};

}  // namespace spillway::engine
