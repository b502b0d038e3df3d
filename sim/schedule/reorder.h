// Another order for a program that XLA has finished: the one that XLA would have made of it under
// other flags.
#pragma once

#include "sim/schedule/xla_order.h"

namespace spillway {

struct Reordered {
  /// The program in the form that XLA orders: every collective as start and done, and what must
  /// come before what as control dependencies. It computes what the given one does.
  Program program;
  XlaOrder order;  ///< of `program`
};

/// Only the graph decides, and of the given order what the graph has lost: who reads before
/// something is written over, and that recomputation waits for its gradient. `given` is the order
/// the program has. How near this comes to XLA: docs/schedule.md.
Reordered reorder(const Program& program, const Schedule& given, const HardwareProfile& profile,
                  const XlaOrderOptions& options = {});

/// A rewritten program with those of its computations that a rewrite changed, of those that run by
/// themselves, in the order that XLA would have given them; the others stay as they are. The order
/// is that of the text.
Program reorder_changed(const Program& rewritten, const Program& original,
                        const HardwareProfile& profile, const XlaOrderOptions& options = {});

}  // namespace spillway
