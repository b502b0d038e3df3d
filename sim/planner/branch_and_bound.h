// Goes through all policies without simulating most of them: what cannot fit, or cannot be faster
// than what was simulated, is left out with all its completions.
#pragma once

#include <cstddef>
#include <optional>

#include "sim/planner/case_book.h"
#include "sim/planner/policy_bounds.h"

namespace spillway {

struct BranchAndBound {
  double policies = 0;    ///< that there are, a floating-point number since they may be very many
  bool proven = false;    ///< nothing that was left out can be better than the best simulated
  Seconds left_out_from;  ///< where not: no policy that was left out and fits is faster
};

/// Simulates into `book` until the answer is proven or `most` policies have been simulated for it.
/// What comes out does not depend on the number of threads. `book` holds a policy that may be
/// proposed.
Result<BranchAndBound> branch_and_bound(const Evaluator& evaluator, PolicyBounds& bounds,
                                        std::size_t most, CaseBook& book);

}  // namespace spillway
