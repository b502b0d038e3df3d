// How a user makes a plan happen: XLA flags, environment, MaxText keys, JAX code.
#pragma once

#include <string>
#include <vector>

#include "sim/planner/planner.h"

namespace spillway {

struct Setting {
  std::string name, value;
  std::string why;
};

struct Advice {
  std::vector<Setting> flags;  ///< of XLA, without the leading --; only what differs from defaults
  std::vector<Setting> environment;
  std::vector<Setting> maxtext;  ///< keys of a MaxText configuration
  std::string jax_policy;        ///< an expression for jax.checkpoint(policy=…)
};

/// `has_names` is whether handles carry names the user knows; without, there is nothing to set in
/// MaxText or JAX. `unmatched` are names that the program does not save.
Advice advise(const PlanResult& plan, bool has_names, const std::vector<std::string>& unmatched);

}  // namespace spillway
