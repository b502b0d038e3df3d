// A program whose text has the order of a schedule.
#pragma once

#include "model/memory/flat_schedule.h"

namespace spillway {

/// The same program; computations that the schedule leaves as they are stay shared.
Program in_order(const Program& program, const Schedule& schedule);

}  // namespace spillway
