// From a program, its costs and a machine to what the engine runs: tasks on streams over resources,
// with the way back from steps to instructions.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/cost_table.h"
#include "model/cost/topology.h"
#include "model/hardware/profile.h"
#include "model/memory/assignment.h"
#include "sim/lowering/device_streams.h"
#include "sim/lowering/machine_tasks.h"

namespace spillway {

/// What a step of the engine stands for.
struct StepOrigin {
  enum Kind : std::uint8_t { kKernel, kCollective, kCopy, kWait, kLoop } kind = kKernel;
  InstructionId instruction;  ///< a wait: the start it waits for where that is known
  std::optional<TransferDirection>
      direction;  ///< of a copy across the host link, or a wait for one
  bool waits_for_collective = false;
  DeviceStream stream;
  /// A wait: the instruction at which the main stream blocks, and the step that started what it
  /// waits for.
  std::optional<InstructionId> done;
  std::optional<engine::StepId> started;
};

struct LoweredProgram {
  engine::EngineProgram program;
  MachineResources resources;
  IdVector<engine::StepId, StepOrigin> origins;
  std::vector<std::string> assumptions;  ///< what had to be taken for granted, a line each
};

/// Lowers a scheduled program whose memory has been assigned. The GPUs of the program that share a
/// host CPU are taken to do the same at the same time, as SPMD programs do.
LoweredProgram lower(const Program& program, const Schedule& schedule, const Lifetimes& memory,
                     const CostTable& costs, const StreamAssignment& streams,
                     const HardwareProfile& profile, const Topology& topology);

}  // namespace spillway
