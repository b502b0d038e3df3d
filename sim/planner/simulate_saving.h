// What saving a value without a name would do, simulated: the planned step in its order, with what
// would not run again taken out of it.
//
// No program saves the value, so its stack is not in the memory that is assigned: HBM is that of
// the policy with all of the value on top, which is more than it takes where the peak lies
// elsewhere.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/planner/planner.h"
#include "sim/planner/unnamed_values.h"

namespace spillway {

/// Simulates the first `most` of the rows, which are of the policy of `planned`.
std::optional<Error> simulate_saving(const Evaluator& evaluator, const PolicyCase& planned,
                                     const ScheduleSettings& order, std::size_t most,
                                     std::vector<WorthSaving>& rows);

/// Values that are worth saving instead of a name: the name recomputed, the value saved, and the
/// step then faster than the plan's within its budget. The fastest first, one a name.
Result<std::vector<WorthSaving>> find_saved_instead(const Evaluator& evaluator,
                                                    const PlanResult& plan, std::size_t threads);

}  // namespace spillway
