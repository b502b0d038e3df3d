// Copies of what a loop carries that the order found for it does not need.
#pragma once

#include "model/memory/flat_schedule.h"
#include "model/program/program.h"

namespace spillway {

/// XLA copies an element of a loop's carry whose readers might run when the next iteration's value
/// is there already, orders the body, and drops the copies whose readers the order has put in
/// front.
///
///   x = copy(carry.1); …; f(x); …; next = g(…)     next is carry.1 of the next iteration, and made
///                                                  when nobody reads x any more: x is carry.1
///
/// What is dropped becomes a renaming; positions stay.
Program drop_copies(const Program& program, const Schedule& schedule);

}  // namespace spillway
