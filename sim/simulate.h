// One step of a training program on a machine: how long it takes, what is busy when, which copies
// are exposed and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/cost/cost_table.h"
#include "model/hardware/profile.h"
#include "model/memory/assignment.h"
#include "model/memory/memory_report.h"
#include "sim/prepared_step.h"

namespace spillway {

/// Why the main stream waited for a copy or a collective.
enum class StallReason {
  kLink,         ///< no work to hide it: the link, or the fabric, would have to be faster
  kQueue,        ///< it stood behind another copy in its stream
  kContention,   ///< something shared slowed it: HBM, the host's memory, both directions at once
  kIssuedLate,   ///< it could have started earlier
  kDoneEarly,    ///< what waits for it comes later than the wait
  kLatency,      ///< its start-up
  kSynchronous,  ///< a collective on the main stream, beside which nothing runs
};

/// Time the main stream lost at one place, all iterations together: a wait, or a collective that
/// runs on it.
struct ExposedWait {
  InstructionId start;
  InstructionId done;                          ///< of what runs on the main stream, the same
  std::optional<TransferDirection> direction;  ///< empty for a collective
  bool collective = false;
  Seconds exposed;  ///< of one step
  /// Of one step, what is awaited here itself: of all starts that hand over to this wait, where a
  /// pipelined loop has one in front of it and one inside.
  Seconds duration;
  StallReason reason = StallReason::kLink;
  std::string explanation;  ///< one sentence: what stands in the way
};

/// "link", "queue", … in the output; "fabric" where a collective has nothing to hide it,
/// "synchronous" where it runs on the main stream.
std::string_view cause_of(const ExposedWait& wait);

struct StreamUse {
  InstructionId start;
  DeviceStream stream;
};

struct SimResult {
  Seconds step;
  Seconds compute_busy;     ///< kernels on the main stream, gaps included
  Seconds collective_busy;  ///< on any stream
  Seconds device_to_host_busy, host_to_device_busy;
  Seconds exposed_device_to_host, exposed_host_to_device;
  Seconds exposed_collective;        ///< waits for collectives, and collectives on the main stream
  Seconds exposed_slices;            ///< waits for copies within HBM
  Seconds idle;                      ///< gaps between kernels
  std::vector<ExposedWait> exposed;  ///< longest first
  std::vector<StreamUse> streams;    ///< every asynchronous operation
  std::vector<std::string> assumptions;
  std::vector<std::string> unknown;  ///< custom calls whose cost is only a lower bound
  MemoryTotals memory;
  HostTraffic traffic;
  ProgramFlops flops;
};

struct SimOptions {
  /// Costs of a related program with the same machine and topology, to take over what has not
  /// changed.
  const CostTable* base_costs = nullptr;
  /// How the XLA that compiled the program gives host copies their streams, where that is known;
  /// else its text decides (device_streams.h).
  std::optional<CopyStreams> copy_streams = {};
  /// Whether loops that repeat themselves are extended instead of simulated: the same result.
  bool extend_loops = true;
  /// Whether the result says what is exposed where and why, on which streams, and what was assumed;
  /// else it holds the numbers alone, as thousands of policies need them.
  bool explains = true;
};

/// Runs a prepared step and accounts for it. An error: the step takes far longer than any does.
Result<SimResult> simulate(const Program& program, const MemoryAssignment& memory,
                           const HardwareProfile& profile, const Topology& topology,
                           const PreparedStep& prepared, const engine::EngineOptions& options = {});

/// Simulates a scheduled program. Pure: same input, same result, on every machine. An error: the
/// engine cannot run it, because a task or the step takes far longer than any step does.
Result<SimResult> simulate(const Program& program, const Schedule& schedule,
                           const MemoryAssignment& memory, const HardwareProfile& profile,
                           const Topology& topology, const SimOptions& options = {});

}  // namespace spillway
