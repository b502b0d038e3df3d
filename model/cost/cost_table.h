// Work and cost of every instruction that a program runs, computed once a computation.
//
// A program derived from another shares most of its computations with it; their costs are shared
// too. In a computation that was rewritten, instructions that stayed as they were keep theirs. So a
// what-if pays for what it changed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/cost/cost.h"
#include "model/cost/program_flops.h"
#include "model/cost/topology.h"
#include "model/cost/work.h"
#include "model/hardware/profile.h"

namespace spillway {

/// Of one computation, by instruction. An async start costs what it wraps, and so does the wrapped
/// instruction itself: whoever adds up takes one of the two. Loops, calls and conditionals are
/// free, what they run is in its own computation.
struct ComputationCosts {
  std::vector<Work> works;
  std::vector<Cost> costs;
  OpCount ops;  ///< of its instructions, without what async starts wrap

  /// Fusions and functions whose content it depends on; loops and branches are not among them.
  std::vector<ComputationId> called;
};

class CostTable {
 public:
  /// Whether the program runs this computation by itself; only these have costs.
  bool contains(ComputationId id) const { return by_computation_[id] != nullptr; }

  std::span<const Cost> costs(ComputationId id) const { return at(id).costs; }
  std::span<const Work> works(ComputationId id) const { return at(id).works; }
  const Cost& cost(InstructionId id) const { return costs(id.computation)[id.instruction.index]; }
  const Work& work(InstructionId id) const { return works(id.computation)[id.instruction.index]; }

  /// Other costs for the instructions of a computation that runs by itself; works stay.
  void replace_costs(ComputationId id, std::vector<Cost> costs);

  /// Arithmetic of a computation; nothing for one that has no costs.
  OpCount ops(ComputationId id) const { return contains(id) ? at(id).ops : OpCount{}; }

 private:
  friend class CostTableBuilder;

  const ComputationCosts& at(ComputationId id) const {
    check(contains(id), "a computation that does not run by itself was asked for its cost");
    return *by_computation_[id];
  }

  IdVector<ComputationId, std::shared_ptr<const ComputationCosts>> by_computation_;
  /// What they were computed from; kept alive, so that an address names one computation for ever.
  IdVector<ComputationId, std::shared_ptr<const Computation>> computations_;
};

/// Costs of all computations that the program runs.
CostTable costs(const Program& program, const HardwareProfile& profile, const Topology& topology);

/// The same, taking over from `base` what has not changed: computations that are the same objects,
/// down to the fusions they call, and in others the instructions with the same name, text, shapes
/// and fusions. `base` is the table of a program with as many devices, made with the same profile
/// and topology.
CostTable costs(const Program& program, const HardwareProfile& profile, const Topology& topology,
                const CostTable& base);

/// As count_flops(program), from a table of the program's costs.
ProgramFlops count_flops(const Program& program, const CostTable& table);

}  // namespace spillway
