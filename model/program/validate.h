// What the stages behind the readers rely on, checked once: a text can be read and still be no
// program, because a hand or a damaged file put together what does not fit.
//
// Checked are the numbers of operands and of called computations, the shapes that must agree for
// values to be followed through tuples, loops, calls, fusions and async pairs, and that sizes and
// trip counts add up within 64 bits. Not checked is what nobody here relies on: whether attributes
// make sense to XLA, types of operands, layouts.
#pragma once

#include <optional>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway {

/// The first thing wrong with a program, at the instruction where it shows; empty for a sound one.
std::optional<Error> validate(const Program& program);

}  // namespace spillway
