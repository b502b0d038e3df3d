// Packs buffers with known live times into one block, as XLA's best-fit heap does, in two orders;
// the smaller block wins.
#pragma once

#include <optional>
#include <vector>

#include "model/base/units.h"

namespace spillway {

/// One buffer, or several that lie at one address one after another. Times count allocations and
/// frees, both ends inclusive.
struct HeapItem {
  struct Use {
    std::int32_t start = 0, end = 0;
    Bytes size;
  };
  std::vector<Use> uses;        ///< first use first; at least one
  std::uint32_t tie_break = 0;  ///< smaller first among equals
};

/// Size of the place an item needs.
Bytes largest_use(const HeapItem& item);

struct HeapResult {
  Bytes size;
  std::vector<Bytes> offsets;    ///< of each item
  std::int64_t ranges_seen = 0;  ///< ranges of offsets in use that were looked at for it
};

/// Every offset is a multiple of this.
inline constexpr Bytes kHeapAlignment{256};

/// Spatial order: larger first, then longer. Temporal order: longer first, then larger. Each item
/// takes the smallest free gap that holds it over all its times; ties go to the lower offset.
HeapResult pack_heap(const std::vector<HeapItem>& items);

/// No packing is smaller: what is live together. Found without packing.
Bytes smallest_heap(const std::vector<HeapItem>& items);

}  // namespace spillway
