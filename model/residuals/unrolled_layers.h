// Which layer's backward part an instruction of an unrolled step belongs to, and what it waits for.
#pragma once

#include <vector>

#include "model/residuals/crossing_values.h"

namespace spillway {

/// Fills `layers` and `layer_of` of a table from its groups, the layer input's first. An
/// instruction of the backward part belongs to the earliest layer that it hangs on, through what
/// that layer saved or through its weights.
void find_backward_layers(const Program& program, const StepParts& parts,
                          const std::vector<CrossingGroup>& groups, UnrolledTable& table);

}  // namespace spillway
