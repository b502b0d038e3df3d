// NVTX ranges of an Nsight Systems export: XLA opens one around what it launches for a module and
// one for each thunk, on the thread that launches. A launch belongs to the ranges around it.
//
//   thread   [XlaModule:#hlo_module=jit_step,program_id=4#                        )
//                [Thunk:#hlo_op=fusion.1#   )  [Thunk:#hlo_op=copy-start.2#   )
//                    cuLaunchKernel                cuMemcpyAsync
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/run/gpu_events.h"
#include "model/run/nsys_tables.h"

namespace spillway {

/// What a launch was for. Ids of executions are those of the ranges.
struct LaunchOwner {
  RunNameId instruction, module;
  std::optional<std::int64_t> execution, module_execution;
};

struct LaunchOwners {
  /// By the correlation id of the launch, and the process it ran in.
  std::map<std::pair<std::int64_t, std::int64_t>, LaunchOwner> owners;
  std::int64_t ranges = 0;  ///< of XLA
  std::vector<RunNote> notes;
};

/// The process of a globalTid or globalPid.
std::int64_t process_of(std::int64_t global_id);

/// `strings` are the file's texts by their ids.
LaunchOwners find_launch_owners(const SqliteFile& file, const NsysTables& tables,
                                const std::map<std::int64_t, std::string>& strings,
                                RunNames& names);

}  // namespace spillway
