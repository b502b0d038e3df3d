// The parts of a plan's answer that speak of XLA's flags.
#pragma once

#include <string>

#include "sim/report/plan_report.h"

namespace spillway {

/// The flags that are recommended, each with what it brings; or why there are none. Empty, or ends
/// with an empty line.
std::string flags_text(const PlanReport& report);
/// What is wrong with the user's own; empty where none were given, or ends with an empty line.
std::string user_flags_text(const PlanReport& report);
/// The same at the end of an answer: begins with an empty line.
std::string user_flags_tail(const PlanReport& report);

}  // namespace spillway
