// Where there are too many policies to go through: the best policy of a linear model, simulated,
// and the model put right by what came out.
//
// In the model each choice of a handle has its share of step, HBM and host memory, whatever becomes
// of the others. The shares are those of moving one handle at a time away from the best policy that
// is known.
#pragma once

#include <optional>

#include "sim/planner/case_book.h"

namespace spillway {

/// Simulates into `book`, which holds a policy that may be proposed.
std::optional<Error> search_linearly(const Evaluator& evaluator, CaseBook& book);

}  // namespace spillway
