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

/// Simulates into `book`, which holds a policy that may be proposed, starting from the best of
/// those that need no more HBM than `room`. With less room than the budget's another part of the
/// policies is looked through: where memory fills, XLA stops hiding collectives, so that the
/// fastest policy need not use what there is.
std::optional<Error> search_linearly(const Evaluator& evaluator, Bytes room, CaseBook& book);

}  // namespace spillway
