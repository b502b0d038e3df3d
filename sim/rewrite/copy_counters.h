// Undoes what XLA does to the counters of loops after it has ordered a program, so that it can be
// ordered anew.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// Every loop body that counts in place reads a copy of its counter instead. XLA orders bodies with
/// that copy, since whoever reads the counter could otherwise not run behind its increment, and
/// drops it where the order it found does not need it.
///
///   before   i = counter;              slice(w, i);  …  next = i + 1
///   after    i = copy(counter);        slice(w, i);  …  next = i + 1
Program copy_counters(const Program& program);

}  // namespace spillway
