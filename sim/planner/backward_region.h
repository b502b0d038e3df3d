// The backward part of a layer, as far as it computes again what the forward part did: the body of
// a loop over layers, or one layer of a step whose layers are not scanned.
#pragma once

#include <cstdint>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"
#include "model/residuals/unrolled.h"

namespace spillway {

struct BackwardRegion {
  ComputationId body;
  std::int64_t layers = 1;  ///< that there are of it in a step
  // One entry an instruction of the body.
  std::vector<char> no_gradient;  ///< hangs on nothing that a later layer hands on
  std::vector<char> reads_saved;  ///< reads what the forward part saved for the layer
  /// Brings a saved value here and does nothing else, if it reads one: a copy from the host.
  std::vector<char> only_brings;
};

/// Of a backward loop. Elements of its carry may be handed on (parameters, stacks), count, or be
/// made of such alone (a fetch for the next layer).
BackwardRegion region_of_loop(const Program& program, const MemoryAssignment& memory,
                              const ResidualTable& residuals, InstructionId loop);

/// Of one layer that is not scanned; `table` is that of the program.
BackwardRegion region_of_layer(const Program& program, const UnrolledTable& table,
                               std::uint32_t layer);

}  // namespace spillway
