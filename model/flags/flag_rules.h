// The rules behind check_flags() that look at flags together: contradictions, and what has no
// effect. A new rule is a function in flag_rules.cpp and a row in the table at its end.
#pragma once

#include <vector>

#include "model/diagnostics/diagnostics.h"
#include "model/flags/flag_settings.h"

namespace spillway::internal {

std::vector<Diagnostic> check_together(const FlagSettings& settings, const FlagContext& context);

}  // namespace spillway::internal
