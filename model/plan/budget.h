// What a plan may use, and whether it fits.
//
//   HBM  |---------- pool: fraction x HBM ----------|-- reserve --|- rest -|
//        |-- what the program allocates --|- free --|
// The pool is what XLA's allocator takes at the start; context, communication buffers and library
// workspaces live beside it, so that a fraction can also be too large (docs/planning.md#budget).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/cost/topology.h"
#include "model/hardware/profile.h"
#include "model/memory/memory_report.h"

namespace spillway {

/// JAX's default for XLA_PYTHON_CLIENT_MEM_FRACTION.
inline constexpr double kDefaultMemoryFraction = 0.75;

/// XLA's pool of pinned host memory for each device: the default of
/// XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB (GetGpuHostAllocator in xla/pjrt/gpu/gpu_helpers.cc).
inline constexpr Bytes kDefaultHostPool{std::int64_t{64} << 30};

/// The value of XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB that holds `need`.
std::int64_t host_pool_gib(Bytes need);

struct Budget {
  Bytes hbm;                                 ///< of the device
  Bytes reserve;                             ///< beside the pool
  Bytes pool;                                ///< what the program may allocate
  bool pool_is_stated = false;               ///< by the user, rather than JAX's default
  double fraction = kDefaultMemoryFraction;  ///< pool / hbm
  double margin = 0;           ///< share of the pool that holes between arrays may take
  std::optional<Bytes> block;  ///< largest single block to be had; empty: as much as there is room
  Bytes host;                  ///< pinned host memory of each device
  std::string host_origin;     ///< what set `host`, for messages
  /// Pinned host memory of all devices of a host together; empty: no limit of its own.
  std::optional<Bytes> node_host;
  bool node_host_is_stated = false;  ///< else it is what the host has
  std::int64_t devices_per_node = 1;

  /// What the program may allocate on a device, holes left out.
  Bytes room() const;
  /// What a device may pin, its node looked at too.
  Bytes host_room() const;
};

/// What the user may state; the rest comes from the profile.
struct BudgetWishes {
  std::optional<Bytes> hbm_limit = {};
  std::optional<double> fraction = {};
  std::optional<Bytes> host_limit = {};
  std::optional<double> margin = {};
  std::optional<Bytes> block_limit = {};
  std::optional<Bytes> node_host_limit = {};
};

/// Without wishes: JAX's fraction of the HBM without holes, an equal share of its CPU's memory for
/// each GPU of the program that the CPU has, and all CPUs' memory for those of a host. Refused:
/// more HBM than there is, a block larger than the pool.
Result<Budget> make_budget(const HardwareProfile& profile, const Topology& topology,
                           const BudgetWishes& wishes);

/// The smallest share of the HBM, in whole hundredths, whose pool holds `need`; above 1 when none
/// does.
double smallest_fraction(Bytes need, Bytes hbm);

struct Fit {
  bool fits = false;
  // By how much it misses; zero where it does not.
  Bytes over_hbm;
  Bytes over_block;              ///< its largest block, by itself
  Bytes over_host;               ///< of each device
  Bytes over_node;               ///< of all devices of a host together
  Bytes node_host;               ///< what those pin
  double smallest_fraction = 1;  ///< of the HBM that would do
  bool beside_reserve = true;    ///< whether that fraction leaves the reserve
};
Fit check_fit(const MemoryTotals& totals, const Budget& budget);

/// All of it for one device, added up: a node's overrun is shared by its devices, and what a device
/// misses of its own is part of that.
Bytes missed(const Fit& fit, const Budget& budget);

/// What is missed, each as "HBM by 3.1 GiB": the limits that bind.
std::vector<std::string> misses_of(const Fit& fit);

}  // namespace spillway
