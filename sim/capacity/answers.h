// What the cells of a capacity report say together: how many devices a model needs, what a bigger
// batch brings, how machines compare. Cells are named by their place in the report.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/capacity/capacity.h"

namespace spillway {

/// A model on a machine at one sequence, over all numbers of devices and batches.
struct CapacityNeed {
  /// With the fewest devices with which any batch fits, the batch of most tokens a second; empty
  /// where nothing fits.
  std::optional<std::size_t> fewest;
  /// With the most devices with which any batch fits, likewise.
  std::optional<std::size_t> most;
  /// Where nothing fits, the cell that misses least; empty where no cell is possible.
  std::optional<std::size_t> nearest;
  std::size_t any = 0;  ///< one of the cells, for who they are
};
/// In the order of the report.
std::vector<CapacityNeed> find_needs(const CapacityReport& report);

/// A model on a machine with a number of devices at one sequence, over all batches: at least two
/// that are possible, of which one fits.
struct BatchGain {
  std::size_t smallest = 0;  ///< of the batches that fit
  std::size_t best = 0;      ///< of those, the one with most tokens a second
  /// The smallest larger batch that does not fit.
  std::optional<std::size_t> too_large;
};
std::vector<BatchGain> find_batch_gains(const CapacityReport& report);

/// A model on a machine against the first machine, over the cells of both with the same devices,
/// batch and sequence.
struct MachineComparison {
  std::size_t cell = 0;   ///< one of the machine's, for who it is
  std::size_t first = 0;  ///< one of the first machine's
  std::size_t cells = 0;  ///< possible on both
  std::size_t fit = 0, fit_on_first = 0;
  std::size_t on_host = 0, on_host_on_first = 0;  ///< fit, and use host memory for it
  std::size_t both_fit = 0;
  /// Tokens a second over those of the first machine where both fit; 0 where none do.
  double median = 0, least = 0, most = 0;
};
std::vector<MachineComparison> compare_machines(const CapacityReport& report);

}  // namespace spillway
