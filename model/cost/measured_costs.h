// Durations that somebody measured, in place of the model's: a run's profile overrides what it
// names, and the model says the rest. A table made so may be the base of a what-if's: what did not
// change keeps its measured time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/cost/cost_table.h"

namespace spillway {

/// What one execution of an instruction took on the device, by its name in the program: from the
/// start of its first kernel to the end of its last. Of a collective what the rank took that came
/// last: the others' times hold waiting for it.
using MeasuredTimes = std::map<std::string, Seconds, std::less<>>;

struct MeasuredCosts {
  CostTable table;
  /// Names that the program lacks, or whose instruction runs nothing.
  std::vector<std::string> unmatched;
  /// What runs and was not measured, in the order of the program: its time is the model's.
  std::vector<InstructionId> unmeasured;
};

/// Instructions with a measured time get it, and Bound::kMeasured. It holds what went on beside it
/// in that run, so sim/lowering lets nothing slow it again.
/// A name inside a fusion is a kernel of its own that XLA launches before the fusion's (it fills
/// what a reduction adds to): its time and a gap go to the fusion, if that was measured too. A name
/// that an async start wraps is that start's.
MeasuredCosts with_measured_times(const Program& program, const CostTable& modelled,
                                  const MeasuredTimes& times);

/// The lesser of both times, of each instruction; all else as modelled. A kernel that a policy
/// makes anew has the model's time, and one that stays what was measured: never less than this.
CostTable with_lesser_times(const Program& program, const CostTable& modelled,
                            const CostTable& measured);

/// What was measured on a machine that `here` models, on the one that `there` does: each time
/// longer or shorter as the model's is.
CostTable carried_over(const Program& program, const CostTable& measured, const CostTable& here,
                       const CostTable& there);

}  // namespace spillway
