// Points and loads as people read them.
#pragma once

#include <string>

#include "calibration/probe/plan.h"

namespace spillway::probe {

/// "copy of 4096 bytes host to device, queued".
std::string describe(const Point& point);

}  // namespace spillway::probe
