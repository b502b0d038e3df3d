// Whether the copy of a slice of a stacked host array goes where the program says: XLA annotates
// each such copy in a loop with a start and a step, and the runtime follows the annotation instead
// of computing the index.
#pragma once

#include <cstdint>
#include <optional>

#include "model/residuals/residuals.h"

namespace spillway {

/// Where the slice of iteration i begins in its array: offset + i x stride, in bytes.
struct SliceWalk {
  std::int64_t offset = 0, stride = 0;
  friend bool operator==(const SliceWalk&, const SliceWalk&) = default;
};

struct WrongSlice {
  SliceWalk asked;      ///< what the index in the program comes to
  SliceWalk annotated;  ///< `dynamic_slice_config` of the copy
};

/// Computes the index of a read for the first two iterations of its loop, and compares it with the
/// annotation. Empty where they agree, where there is no annotation, or where the index hangs on
/// more than the loop's counter and constants.
std::optional<WrongSlice> find_wrong_slice(const Program& program, const FlatSchedule& schedule,
                                           const StackAccess& read);

}  // namespace spillway
