// How long computations take on the main stream, added up without simulating: to compare branches,
// to bound what a step can take, and to say what a loop takes.
#pragma once

#include <functional>

#include "model/cost/cost_table.h"
#include "model/program/program.h"

namespace spillway {

/// Which branch of a conditional counts: nobody knows which one runs.
enum class BranchTaken { kShortest, kLongest };

/// Of one run of each computation: its instructions one after another, loops as often as XLA knows
/// (else once, with their condition), calls and branches with what is inside. `time_of` says what
/// an instruction counts; it is asked for all that are no loop, call or conditional. In seconds of
/// whole picoseconds, as instructions are simulated; computations that have no costs take none.
IdVector<ComputationId, Seconds> run_times(const Program& program, const CostTable& costs,
                                           BranchTaken taken,
                                           const std::function<Seconds(InstructionId)>& time_of);

/// What a loop, call or conditional takes, from the run times of what it calls.
Seconds time_of_called(const Program& program, InstructionId caller,
                       const IdVector<ComputationId, Seconds>& run_times, BranchTaken taken);

}  // namespace spillway
