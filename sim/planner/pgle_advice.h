// Whether XLA should be given the profile of model/run/write_pgle.h. It changes an order of
// execution that only XLA makes, so the answer is a rule: what recompiling programs of our own
// showed. The programs, the figures and their limits: docs/pgle.md.
#pragma once

#include <string>
#include <vector>

#include "model/flags/flag_settings.h"
#include "model/run/write_pgle.h"
#include "sim/planner/advice.h"

namespace spillway {

struct PgleAdvice {
  bool recommended = false;
  /// To set, without the leading --; the profile's own among them only where it is recommended, and
  /// none that the user sets so already or that the version lacks.
  std::vector<Setting> flags;
  std::string text;  ///< why
};

/// What the program does as it was compiled, with which the profile is compared, and under which
/// flags it would be compiled again.
struct PgleSituation {
  bool is_planned = true;  ///< the plan leaves the policy as it was compiled
  Seconds kernels;         ///< of one step
  Seconds link;            ///< both directions together, of one step
  FlagContext context;
  FlagSettings users;  ///< what the user sets already
};

/// `path` is where the profile was written.
PgleAdvice advise_pgle(const PgleProfile& profile, const PgleSituation& situation,
                       const std::string& path);

}  // namespace spillway
