// The parts of a plan's answer that speak of XLA's flags.
#pragma once

#include <string>

#include "sim/report/plan_report.h"

namespace spillway {

/// Searches for flags that help the best policy, and puts them in front of the advice. Of a plan
/// that does not fit only those that make it fit.
void add_simulated_flags(PlanReport& report, const Evaluator& evaluator);

/// Whether a plan that does not fit does with the flags recommended.
bool flags_make_it_fit(const PlanReport& report);

/// The flags that are recommended, each with what it brings; or why there are none. Empty, or ends
/// with an empty line.
std::string flags_text(const PlanReport& report);
/// What is wrong with the user's own; empty where none were given, or ends with an empty line.
std::string user_flags_text(const PlanReport& report);
/// The same at the end of an answer: begins with an empty line.
std::string user_flags_tail(const PlanReport& report);

}  // namespace spillway
