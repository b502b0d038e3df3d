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

/// Which layer of its stack is touched in iteration i of the loop: first + i x step.
struct LayerWalk {
  std::int64_t first = 0, step = 0;
  friend bool operator==(const LayerWalk&, const LayerWalk&) = default;
};

/// What the index of a slice comes to, read or written. Empty: the slice is not one whole layer,
/// the loop runs less than twice, or the index hangs on more than the loop's counter and constants,
/// leaves its type or the stack.
std::optional<LayerWalk> find_layer_walk(const Program& program, const FlatSchedule& schedule,
                                         const StackAccess& access);

/// The layer that a copy in straight code reads or writes, where that is constant: of the iteration
/// that XLA peels off a pipelined loop.
std::optional<std::int64_t> find_layer(const Program& program, const FlatSchedule& schedule,
                                       InstructionId copy);

struct WrongSlice {
  SliceWalk asked;      ///< what the index in the program comes to
  SliceWalk annotated;  ///< `dynamic_slice_config` of the copy
};

/// What an annotation is found to be.
struct SliceCheck {
  bool checked = false;             ///< both walks are known
  std::optional<WrongSlice> wrong;  ///< where they differ
};

/// Computes the index of a read for the first two iterations of its loop, and compares it with the
/// annotation. Not checked: there is no annotation, the loop runs less than twice, or the index
/// hangs on more than the loop's counter and constants, leaves its type or the stack.
SliceCheck check_slice(const Program& program, const FlatSchedule& schedule,
                       const StackAccess& read);

/// The first read of an offloaded residual whose annotation is wrong.
std::optional<WrongSlice> find_wrong_slice(const Program& program, const FlatSchedule& schedule,
                                           const Residual& residual);

}  // namespace spillway
