// Models x machines x numbers of GPUs x batches x sequences: for each cell the policy that trains
// fastest and fits, and what binds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/plan/budget.h"
#include "sim/capacity/step_estimate.h"

namespace spillway {

struct CapacityRequest {
  /// Read for a number of devices; `label` is how reports call it.
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
  double batch = 0;  ///< sequences a device
  std::int64_t sequence = 0;
  friend auto operator<=>(const CapacityKey&, const CapacityKey&) = default;
};

struct CapacityCell {
  CapacityKey key;
  std::string impossible;  ///< why there is no such step: a mesh that cannot split; else empty
  bool fits = false;       ///< with `policy`; where nothing fits, that is what misses least
  std::string policy;      ///< "minimal_offloaded", "full, optimizer on the host"
  StepEstimate step;
  Bytes pool, host;              ///< what there is
  double tokens_per_second = 0;  ///< all devices
  double mfu = 0;                ///< of the bf16 peak
  std::string binds;  ///< "compute", "HBM bandwidth", "collectives", "host link"; where nothing
                      ///< fits "HBM capacity" or "host memory"

  /// What is left; negative where it does not fit.
  Bytes hbm_headroom() const { return pool - step.device; }
  Bytes host_headroom() const { return host - step.host; }
};

struct CapacityReport {
  std::vector<CapacityCell> cells;       ///< in the order of the request: models outermost
  std::vector<std::string> assumptions;  ///< sentences, each once
};

/// Cells `owns` says no to are left out. With all cores; the result does not depend on how many.
/// An error: a model that cannot be read for any number of devices, or an unknown policy.
Result<CapacityReport> estimate_capacity(const CapacityRequest& request,
                                         const std::function<bool(std::size_t)>& owns = {});

/// The fewest devices of the grid with which a model trains on a machine with a global batch of at
/// least what one cell has; and what more of them bring.
struct CapacityNeed {
  std::string model, machine;
  std::int64_t sequence = 0;
  std::optional<std::int64_t> fewest_devices;  ///< empty: none of the grid
  std::string policy;
  double tokens_per_second = 0, tokens_per_second_per_device = 0;
};
std::vector<CapacityNeed> find_needs(const CapacityReport& report);

}  // namespace spillway
