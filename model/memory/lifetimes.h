// A program's values, which of them share a buffer, and from when to when each is live: all that is
// known of memory before anything has a place (assignment.h).
#pragma once

#include "model/memory/live_range.h"

namespace spillway {

struct Lifetimes {
  FlatSchedule schedule;
  ValueTable values;
  Liveness liveness;
};

Lifetimes find_lifetimes(const Program& program, const Schedule& schedule);

}  // namespace spillway
