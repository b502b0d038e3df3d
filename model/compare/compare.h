// Two programs side by side: what only one of them holds. For "memory grew after an upgrade" and
// "did my policy do anything".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/compare/inventory.h"
#include "model/residuals/residuals.h"

namespace spillway {

/// What one program has more of than the other, largest first.
struct Excess {
  std::vector<Item> first, second;
};

/// Takes away what both lists have. Alike are, in this order of trust: same name, shape and origin;
/// same shape and origin; same shape and name but for its number; same shape. What is left differs
/// in number or in shape.
Excess find_excess(std::vector<Item> first, std::vector<Item> second);

/// A residual that lies elsewhere, or is saved by one program only.
struct ResidualChange {
  std::string label;  ///< its names, or its shape
  std::int64_t layers = 0;
  Bytes bytes;  ///< all layers
  std::optional<Placement> first, second;
};

/// Residuals that differ. They are paired by name where both programs have names, else by shape and
/// layers, in order.
std::vector<ResidualChange> compare_residuals(const ResidualTable& first,
                                              const ResidualTable& second);

/// All in which two programs differ.
struct Comparison {
  Excess buffers, host_arrays, offloads, reloads, clones;
  std::vector<ResidualChange> residuals;

  /// Whether nothing is kept elsewhere and nothing crosses the link that did not before.
  bool same_placement() const;
};

/// `first` and `second` with the residuals of the same programs.
Comparison compare(const Inventory& first, const ResidualTable& first_residuals,
                   const Inventory& second, const ResidualTable& second_residuals);

}  // namespace spillway
