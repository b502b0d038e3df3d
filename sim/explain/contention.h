// Who takes part of what an awaited copy is slowed by.
#pragma once

#include <map>
#include <vector>

#include "sim/engine/program.h"
#include "sim/explain/target.h"

namespace spillway {

/// A step whose task used the same resource.
struct Sharer {
  engine::StepId step;
  SimTime time;  ///< of one step: the main stream waited, and both ran
};

/// By the resource that holds the awaited one below full speed: who else used it meanwhile, longest
/// first. Runs the steps once more; a program that has run before (engine.h).
std::map<engine::ResourceId, std::vector<Sharer>> find_sharers(const engine::EngineProgram& program,
                                                               const Target& target,
                                                               bool extend_loops = true);

}  // namespace spillway
