// Policies that need no search: what others would do. A plan is never worse than the best of them.
#pragma once

#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/plan/policy.h"

namespace spillway {

/// What a rule of thumb knows of a handle.
struct HandleFacts {
  /// Its copies to the host and back, alone on the link, of a step; zero where layers are not
  /// scanned and it is open what they run beside.
  Seconds out, in;
  Seconds again;  ///< products and attention that recomputing it alone runs again, of a step
};

struct BaselineFacts {
  const std::vector<Handle>& handles;
  std::vector<HandleFacts> of;  ///< each handle
  Seconds forward, backward;    ///< products and attention of the loops over layers, of a step
};

struct Baseline {
  std::string name;
  /// Tried in this order; the last one that fits is the answer, or the first where none does.
  std::vector<Policy> chain;
};

/// State stays as compiled in all of them. MaxText's named policies are among them where handles
/// have MaxText's names.
std::vector<Baseline> baselines(const BaselineFacts& facts);

}  // namespace spillway
