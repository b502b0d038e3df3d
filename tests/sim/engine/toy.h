// A machine and a clock whose answers fit in the head.
#pragma once

#include <cstdint>

#include "sim/engine/program.h"

namespace spillway::engine::testing {

constexpr SimTime seconds(std::int64_t n) { return SimTime(n * 1'000'000'000'000); }
constexpr SimTime milliseconds(std::int64_t n) { return SimTime(n * 1'000'000'000); }

/// HBM at 32 B/s; a link to the host at 4 B/s each way and 6 B/s both ways together; a stream for
/// each direction. Copies take from the HBM what they move.
struct Toy {
  EngineProgram program;
  ResourceId hbm = add_resource(program, 32);
  ResourceId h2d = add_resource(program, 4);
  ResourceId d2h = add_resource(program, 4);
  ResourceId both = add_resource(program, 6);
  StreamId down = add_stream(program);  // device to host
  StreamId up = add_stream(program);    // host to device

  TaskId kernel(SimTime compute, std::int64_t hbm_bytes = 0) {
    return add_task(program, {.duration = compute}, {{hbm, hbm_bytes}});
  }
  TaskId offload(std::int64_t bytes) {
    return add_task(program, {}, {{d2h, bytes}, {both, bytes}, {hbm, bytes}});
  }
  TaskId reload(std::int64_t bytes) {
    return add_task(program, {}, {{h2d, bytes}, {both, bytes}, {hbm, bytes}});
  }

  void run(TaskId task) { add_run(program, task); }
  SlotId start(TaskId task, StreamId stream) {
    const SlotId slot = add_slot(program);
    add_start(program, task, stream, slot);
    return slot;
  }
  StepId wait(SlotId slot, std::uint32_t back = 0) { return add_wait(program, slot, back); }
};

}  // namespace spillway::engine::testing
