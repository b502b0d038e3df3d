// What one step becomes under other flags: each case is a policy and a set of flags, ordered as XLA
// would order it, then its memory assigned and one step simulated.
//
//   (program, policy, flags) -> program -> schedule -> memory -> step
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/flags/flag_settings.h"
#include "sim/planner/evaluate.h"
#include "sim/scale/step_size.h"

namespace spillway {

struct WhatIfCase {
  Policy policy;
  FlagSettings flags;  ///< all others are at their defaults
  StepSize size = {};
};

struct WhatIfOutcome {
  WhatIfCase what;
  PolicyCase result;
  /// Of a step made from another program than the one that was given; null: of that one.
  std::shared_ptr<const std::vector<Handle>> handles = nullptr;
};

/// A flag and the values that it is to have, one a case.
struct FlagChoice {
  std::string name;
  std::vector<std::string> values;
};
/// "name=a,b". An error: no name or no value, what check_flags calls an error, or a flag that does
/// not decide the order and so cannot be simulated.
Result<FlagChoice> parse_flag_choice(const std::string& text, const FlagContext& context);

/// Every combination of values, the first flag's changing slowest; first of all the case without
/// any. An error: more than `kMostCases`, or a flag twice.
inline constexpr std::size_t kMostCases = 64;
Result<std::vector<FlagSettings>> combine(const std::vector<FlagChoice>& choices);

/// The line of XLA_FLAGS that a case means.
FlagText to_flag_text(const FlagSettings& flags);

}  // namespace spillway
