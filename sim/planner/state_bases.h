// The program with its state where a policy wants it: what residuals are then moved in. Each
// combination of state classes is made once, when it is first asked for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "model/hardware/profile.h"
#include "model/plan/policy.h"
#include "sim/rewrite/offload_state.h"
#include "sim/rewrite/recompute.h"

namespace spillway {

/// A program, and what the rewrites of residuals want to know of it.
struct StateBase {
  Program program;
  Lifetimes memory;
  ResidualTable residuals;  ///< those of the compiled program, in the same order, without names
  std::optional<RecomputeRewrite> recompute;  ///< of the three
};

/// A handle for each state class that the program has; one that cannot be moved says why.
std::vector<Handle> make_state_handles(const Program& program, const MemoryAssignment& memory,
                                       const TrainingState& state);

/// The error of asking for a state class that the program has no handle for: that it holds no such
/// state, or why it cannot be told. Empty for other names.
std::optional<Error> check_state_name(const std::string& name, const std::vector<Handle>& handles,
                                      const TrainingState& state);

class StateBases {
 public:
  /// Everything must outlive it. XLA is taken to order for the whole HBM, as it does ahead of time:
  /// what a budget allows must not change what a policy needs.
  StateBases(const Program& program, const MemoryAssignment& memory, const TrainingState& state,
             const HardwareProfile& profile);

  /// The program with these classes moved, what the move changes in XLA's order. `changes` are no
  /// more than one a class and such as take effect. Thread-safe.
  const StateBase& with(const std::vector<StateChange>& changes) const;

 private:
  std::unique_ptr<StateBase> make(const std::vector<StateChange>& changes) const;

  const Program& program_;
  const MemoryAssignment& memory_;
  const TrainingState& state_;
  const HardwareProfile& profile_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::pair<StateClass, Placement>>, std::unique_ptr<StateBase>> made_;
};

}  // namespace spillway
