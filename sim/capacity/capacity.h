// Models x machines x numbers of GPUs x batches x sequences: for each cell the policy that trains
// fastest and fits, and what binds. What the cells say together: sim/capacity/answers.h.
//
// Leaves out other meshes than the configuration's, and policies that are no preset: `plan` has
// those for one cell.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/plan/budget.h"
#include "sim/capacity/step_estimate.h"
#include "sim/shard.h"

namespace spillway {

struct CapacityRequest {
  /// Read for a number of devices, by several threads at once; `label` is how reports call it.
  struct Model {
    std::string label;
    std::function<Result<StepSpec>(std::int64_t devices)> read;
  };
  std::vector<Model> models;
  std::vector<HardwareProfile> machines;
  std::vector<std::int64_t> devices;
  std::vector<double> batches;          ///< sequences a device; empty: the configuration's
  std::vector<std::int64_t> sequences;  ///< tokens; empty: the configuration's
  std::vector<std::string> policies;    ///< remat presets and "configured"; empty: all
  bool may_offload_state = false;       ///< optimizer and parameters on the host are choices, too
  BudgetWishes budget;
};

/// Where a cell stands in the grid.
struct CapacityKey {
  std::string model, machine;
  std::int64_t devices = 0;
  double batch = 0;           ///< sequences a device; 0: the configuration's, which cannot be read
  std::int64_t sequence = 0;  ///< tokens; 0 likewise
  friend auto operator<=>(const CapacityKey&, const CapacityKey&) = default;
};

struct CapacityCell {
  CapacityKey key;
  std::string impossible;  ///< why there is no such step: a mesh that cannot split; else empty
  bool fits = false;       ///< with `policy`; where nothing fits, that is what misses least
  std::string policy;      ///< "minimal_offloaded", "full, optimizer on the host"
  StepEstimate step;
  Bytes pool, host;              ///< what there is for a device
  double tokens_per_second = 0;  ///< all devices
  double mfu = 0;                ///< of the bf16 peak
  std::string binds;  ///< "compute", "HBM bandwidth", "collectives", "host link"; where nothing
                      ///< fits "HBM capacity" or "host memory"
  /// Of the fastest policy if memory were no limit: what more of it could bring.
  Seconds step_with_room;

  /// What is left; negative where it does not fit.
  Bytes hbm_headroom() const { return pool - step.device; }
  Bytes host_headroom() const { return host - step.host; }
  double tokens_per_second_per_device() const {
    return tokens_per_second / static_cast<double>(key.devices);
  }
  bool is_possible() const { return impossible.empty(); }
};

/// What a reader has to know of a machine to read the cells.
struct CapacityMachine {
  std::string id, name;
  Bytes hbm;
  FlopsPerSecond bf16_peak;
  std::string link;          ///< "nvlink-c2c", "pcie"
  BytesPerSecond link_rate;  ///< to the device, the GPU alone
  std::int64_t domain_gpus = 1;
};

struct CapacityReport {
  std::vector<CapacityMachine> machines;
  std::vector<CapacityCell> cells;       ///< in the order of the request: models outermost
  std::vector<std::string> assumptions;  ///< sentences, each once
  std::optional<ShardLabel> shard = {};  ///< the part of the cells that these are; empty: all
};

std::size_t count_cells(const CapacityRequest& request);

/// How a grid is gone through; the result does not depend on `threads`.
struct CapacityRun {
  std::function<bool(std::size_t)> owns = {};  ///< cells it says no to are left out
  std::function<void()> advance = {};          ///< called after each cell, by several threads
  std::size_t threads = 0;                     ///< 0: as many as there are cores
};

/// An error: a model that cannot be read for any number of devices, an unknown policy, a budget
/// that a machine cannot have, or nothing of one kind to ask about.
Result<CapacityReport> estimate_capacity(const CapacityRequest& request,
                                         const CapacityRun& run = {});

}  // namespace spillway
