// Moves residuals of a scanned program between HBM and pinned host memory: (program, policy) →
// program.
//
// The rule, stated so that a plan can say it: an offload starts right after what it saves was made
// and is done at the end of the loop body; a reload starts at the top of the body and is done right
// before the first use. A residual that comes back to HBM keeps the form of its copies, within HBM.
#pragma once

#include <vector>

#include "model/base/result.h"
#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"

namespace spillway {

struct PlacementChange {
  ResidualId residual;
  Placement placement = Placement::kDevice;
};

/// Why a residual cannot be moved by this rewrite; empty when it can.
std::string why_not_movable(const Program& program, const Residual& residual);

/// The program with these residuals where they are wanted. Changes that ask for what is already so
/// do nothing. Untouched computations are shared with `program`; `memory` and `residuals` are those
/// of `program`.
Program place_residuals(const Program& program, const MemoryAssignment& memory,
                        const ResidualTable& residuals,
                        const std::vector<PlacementChange>& changes);

}  // namespace spillway
