// Undoes what XLA does to the carries of loops after it has ordered a program, so that it can be
// ordered anew.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// Bodies read copies of what their loops carry where XLA orders them so, since whoever reads it
/// could otherwise not run behind what makes the next iteration's value in its place. XLA drops
/// a copy where the order that it found does not need it (sim/schedule/drop_copies).
///
///   before   i = counter;              slice(w, i);  …  next = i + 1
///   after    i = copy(counter);        slice(w, i);  …  next = i + 1
///
/// Counters that are read in place are copied, and arrays of which a fusion makes the next value
/// while another one that reads them may run behind it.
Program copy_carries(const Program& program);

}  // namespace spillway
