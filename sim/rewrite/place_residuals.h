// Moves residuals of a scanned program between HBM and pinned host memory: (program, policy) →
// program.
//
// The rule, stated so that a plan can say it: an offload starts right after what it saves was made
// and is done at the end of the loop body; a reload starts at the top of the body and is done right
// before the first use. Back in HBM, fusions of loops and reductions slice the stack themselves,
// and for the others a slice is made right before its use, as XLA does.
#pragma once

#include <string>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"

namespace spillway {

struct PlacementChange {
  ResidualId residual;
  Placement placement = Placement::kDevice;
};

/// Why a residual cannot be moved by this rewrite; empty when it can. `memory` is that of the
/// program, as below.
std::string why_not_movable(const Program& program, const Lifetimes& memory,
                            const Residual& residual);

/// Why what writes and reads a residual cannot be taken apart into the value of one layer and what
/// is done with it; empty when it can.
std::string why_not_separable(const Program& program, const Lifetimes& memory,
                              const Residual& residual);

/// The program with these residuals where they are wanted. Changes that ask for what is already so,
/// or for what cannot be, do nothing. Untouched computations are shared with `program`; `memory`
/// and `residuals` are those of `program`.
Program place_residuals(const Program& program, const Lifetimes& memory,
                        const ResidualTable& residuals,
                        const std::vector<PlacementChange>& changes);

}  // namespace spillway
