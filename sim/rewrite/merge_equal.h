// Common subexpressions between what a rewrite has added to a loop body and what was there.
#pragma once

#include <functional>

#include "model/program/program.h"

namespace spillway {

/// The body of `loop` with every value computed once, of those that are computed the same way twice
/// (value_keys.h) and at least once by an instruction that is `added`; the earlier one is kept.
/// What is no longer read stays, for drop_dead.
Program merge_equal(const Program& program, InstructionId loop,
                    const std::function<bool(const Instruction&)>& added);

}  // namespace spillway
