// XLA's SchedulerMemoryFencing: control dependencies that keep latency hiding from holding buffers
// for long. A buffer that dies soon in the order made for memory must not live on until the end of
// the step because its last reader (often the copy that offloads it) may wait.
//
//   order for memory   b  read(b)  start.1 done.1  start.2 done.2  start.3 done.3
//                                  slack 0         slack 1
//   slack 1 adds: read(b) before start.2
#pragma once

#include "model/memory/assignment.h"
#include "sim/schedule/step_graph.h"

namespace spillway {

struct FencingOptions {
  /// xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes: smaller buffers are left alone.
  Bytes threshold;
  /// xla_gpu_experimental_scheduler_memory_fencing_slack_windows: how many async windows later than
  /// the one its last reader runs in a buffer may die.
  std::int32_t slack_windows = 1;
};

/// The threshold that a value of the flag means: none when it is off (below 0), 1 % of the
/// scheduler's memory limit for 0, else itself, at most the limit.
std::optional<Bytes> fencing_threshold(std::int64_t flag, Bytes scheduler_limit);

/// What must come before what, in each computation. `given` is the program's memory in the order of
/// the memory scheduler (default_order.h). Every reader of a buffer comes before the start that is
/// `slack_windows` windows behind its last one; windows are those of all async starts, copies too,
/// and host buffers count as any other. Buffers that other computations see, parameters and results
/// are left alone, and so is what the program's own dependencies already say.
IdVector<ComputationId, std::vector<Precedence>> find_memory_fences(const Program& program,
                                                                    const Lifetimes& given,
                                                                    const FencingOptions& options);

/// The program with these as control predecessors, for the scheduler to obey.
Program with_control_dependencies(const Program& program,
                                  const IdVector<ComputationId, std::vector<Precedence>>& added);

}  // namespace spillway
