// Events of a device put together to executions: of instructions, which may launch several kernels,
// and of modules.
#pragma once

#include <vector>

#include "model/run/gpu_events.h"

namespace spillway {

/// Each longest in all first. Events without a name belong to none.
struct Executions {
  std::vector<MeasuredInstruction> instructions;
  std::vector<MeasuredModule> modules;
};

/// `events` are in order of their starts.
Executions find_executions(const RunNames& names, const std::vector<GpuEvent>& events);

}  // namespace spillway
