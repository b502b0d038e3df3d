// How a user makes a plan happen: XLA flags, environment, MaxText keys, JAX code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/flags/flag_settings.h"
#include "model/memory/memory_report.h"
#include "sim/planner/planner.h"

namespace spillway {

/// What a flag does to the step, against the same plan without it, both simulated.
struct FlagEffect {
  Seconds step;       ///< below zero: faster
  Bytes peak_device;  ///< below zero: less HBM
};

struct Setting {
  std::string name, value;
  std::string why;
  /// Of a flag; empty where it cannot be simulated, and then `why` says what is known.
  std::optional<FlagEffect> effect = {};
};

struct Advice {
  std::vector<Setting> flags;  ///< of XLA, without the leading --; only what differs from defaults
  std::vector<Setting> environment;
  std::vector<Setting> maxtext;  ///< keys of a MaxText configuration
  std::string jax_policy;        ///< an expression for jax.checkpoint(policy=…)
  std::string jax_state;         ///< Python that puts state into host memory; may be empty
};

/// What advice rests on, beside the plan.
struct AdviceContext {
  /// The version that will run the plan. Empty where it is none whose flags are known: then no flag
  /// is recommended, since one that it does not know ends the process.
  std::optional<JaxlibVersion> jaxlib;
  FlagSettings user_flags;  ///< what the user sets already
  MemoryTotals planned;     ///< of the best policy
  Bytes pool;               ///< of JAX
  bool has_names = false;   ///< handles carry names the user knows; else nothing is set in JAX
  std::vector<std::string> unmatched;  ///< names that the program does not save
};

Advice advise(const PlanResult& plan, const AdviceContext& context);

}  // namespace spillway
