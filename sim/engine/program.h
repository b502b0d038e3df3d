// What the engine runs: resources, streams, tasks and a tree of steps. Plain data. Nothing here
// knows an instruction, a name or a file; whoever builds a program keeps the way back from ids.
//
// The names live in `spillway::engine`, because "task", "step" and "stream" mean other things
// elsewhere. What it means to run a program: docs/engine.md.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"

namespace spillway::engine {

using ResourceId = Id<struct ResourceTag>;
using StreamId = Id<struct StreamTag>;
using TaskId = Id<struct TaskTag>;
using SlotId = Id<struct SlotTag>;
using StepId = Id<struct StepTag>;

/// Something that running tasks share: HBM bandwidth, a link one way, a link both ways together,
/// the memory of a host, SMs. The unit is the caller's: bytes, or picoseconds of a whole device.
struct Resource {
  std::int64_t capacity = 0;  ///< units per second, above zero
  /// Its capacity holds only while both sides of it are in use: memory that reads and writes at
  /// once, a link that carries both ways. One side alone does not feel it.
  bool two_sided = false;
};

/// Of a two-sided resource. What uses both sides always feels its capacity.
enum class Side : std::uint8_t { kOne, kOther, kBoth };

/// What one execution of a task takes from a resource in all.
struct Demand {
  ResourceId resource;
  std::int64_t amount = 0;  ///< units of the resource
  Side side = Side::kBoth;  ///< matters where the resource is two-sided
};

/// A kernel, a copy, a collective. First `latency` passes, in which nothing is demanded; then the
/// work, whose demands all progress in proportion.
///
///    started        working                 finished
///    |-- latency --|------- work -----------)
///                  takes `duration`, or as long as the scarcest resource needs if that is longer,
///                  when the task has the machine to itself; longer when it must share
struct Task {
  SimTime latency{};
  SimTime duration{};              ///< the least time that the work takes, whatever the machine
  std::int32_t weight = 1;         ///< its share where tasks compete (docs/engine.md#sharing)
  std::uint32_t first_demand = 0;  ///< demands [first_demand, end_demand) of the program
  std::uint32_t end_demand = 0;
};

/// Runs a task on the main stream; the next step comes after it.
struct RunStep {
  TaskId task;
};

/// Hands a task to another stream. It runs there after what the main stream has done so far and
/// after what that stream was given before. Each start makes a new instance of the slot.
struct StartStep {
  TaskId task;
  StreamId stream;
  SlotId slot;
};

/// Blocks the main stream until an instance of the slot has finished: the latest that was started
/// before this point (`back` 0), the one before it (`back` 1), and so on.
///
///   loop 3 { start s; wait s, back 1 }        with one start of s in front of the loop
///   instance started    0 | 1    2    3
///   instance waited for   | 0    1    2
struct WaitStep {
  SlotId slot;
  std::uint32_t back = 0;
};

/// Repeats the steps that follow it, up to but not including `end`.
struct LoopStep {
  std::int64_t trips = 0;
  StepId end;
};

using Step = std::variant<RunStep, StartStep, WaitStep, LoopStep>;

/// The main stream is stream 0. `steps` is the tree in pre-order:
///
///    id  step
///    0   run embed
///    1   loop 126, end 5
///    2     start save on d2h, slot 0
///    3     run layer
///    4     wait slot 0
///    5   run loss
struct EngineProgram {
  IdVector<ResourceId, Resource> resources;
  IdVector<TaskId, Task> tasks;
  std::vector<Demand> demands;
  IdVector<StepId, Step> steps;
  std::size_t stream_count = 1;
  std::size_t slot_count = 0;
};

inline constexpr StreamId kMainStream(0);

/// A resource that is shared in time, as SMs are: one unit is a picosecond of all of it.
inline constexpr std::int64_t kTimeShared = 1'000'000'000'000;

/// Limits that keep the integer arithmetic of the engine exact.
inline constexpr SimTime kLongestTask(std::int64_t{1} << 56);  ///< 20 hours
inline constexpr SimTime kLongestRun(std::int64_t{1} << 58);   ///< 80 hours
inline constexpr std::int32_t kLargestWeight = 1 << 15;
inline constexpr std::size_t kMostStreams = 1 << 14;
inline constexpr std::uint32_t kFurthestBack = 1 << 16;
/// One side of a two-sided resource is at most so many times as fast as both together.
inline constexpr std::int64_t kFastestSide = 1 << 10;

ResourceId add_resource(EngineProgram& program, std::int64_t capacity);
ResourceId add_two_sided(EngineProgram& program, std::int64_t capacity);
StreamId add_stream(EngineProgram& program);
SlotId add_slot(EngineProgram& program);
/// Adds `task` with these demands; its own `first_demand` and `end_demand` are set here.
TaskId add_task(EngineProgram& program, Task task, std::span<const Demand> demands);
TaskId add_task(EngineProgram& program, Task task, std::initializer_list<Demand> demands = {});

StepId add_run(EngineProgram& program, TaskId task);
StepId add_start(EngineProgram& program, TaskId task, StreamId stream, SlotId slot);
StepId add_wait(EngineProgram& program, SlotId slot, std::uint32_t back = 0);
/// Adds a loop around the steps that `body()` adds.
template <typename Body>
StepId add_loop(EngineProgram& program, std::int64_t trips, Body&& body) {
  const StepId loop = program.steps.push(LoopStep{.trips = trips, .end = StepId()});
  std::forward<Body>(body)();
  std::get<LoopStep>(program.steps[loop]).end = StepId(program.steps.size());
  return loop;
}

/// Why a program cannot be run.
struct ProgramFault {
  std::optional<StepId> step;  ///< absent when a resource, a task or a count is at fault
  std::optional<TaskId> task;  ///< where a task is at fault
  std::string text;
};

/// Ids and numbers out of range, loops that do not nest, waits for what was never started. A
/// program without a fault cannot deadlock: a start waits for earlier steps only, and a wait for
/// earlier starts only. `run` checks this, so only who builds programs from a user's input needs to
/// ask.
std::optional<ProgramFault> find_fault(const EngineProgram& program);

}  // namespace spillway::engine
