// Moves a step's state between HBM and pinned host memory: (program, class, placement) → program.
//
// As device_put with memory_kind="pinned_host" makes it: an argument on the host is fetched by a
// copy before whatever reads it whole, and what takes its place is sent back behind what makes it.
// Parameters that loops read layer by layer are fetched slice by slice there, in every loop anew;
// their gradients are written to a stack in host memory (JAX transposes the fetch), which is
// fetched again for the update.
//
//   before   p                                        update(p, g)
//   after    p on the host  start(p)  done            update(done, g)   start(new)  done
//
// Copies stand where they are needed, start beside done. Where XLA's scheduler would have them:
// reorder_changed in sim/schedule/reorder.h.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"
#include "model/state/training_state.h"

namespace spillway {

struct StateChange {
  StateClass kind = StateClass::kOptimizer;
  Placement placement = Placement::kDevice;
};

/// Where all arguments of a class lie; empty when there are none, or some here and some there.
std::optional<Placement> placement_of(const TrainingState& state, StateClass kind);

/// Why a class cannot be moved by this rewrite; empty when it can.
std::string why_state_not_movable(const Program& program, const Lifetimes& memory,
                                  const TrainingState& state, StateClass kind);

/// Stacks that are touched otherwise when a class is moved: those of its arguments and gradients.
std::set<BufferId> stacks_of_state(const Program& program, const Lifetimes& memory,
                                   const TrainingState& state, StateClass kind);

/// The program with these classes where they are wanted. Changes that ask for what is already so,
/// or for what cannot be, do nothing. `memory` and `state` are those of `program`.
Program move_state(const Program& program, const Lifetimes& memory, const TrainingState& state,
                   const std::vector<StateChange>& changes);

}  // namespace spillway
