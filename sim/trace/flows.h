// Where what is offloaded comes back, and who reads it then.
#pragma once

#include <string>
#include <vector>

#include "model/diagnostics/slice_offsets.h"
#include "sim/prepared_step.h"
#include "sim/trace/history.h"

namespace spillway {

/// Of each wait, the step that reads first what it waited for: behind it in the same stretch, or in
/// the next iteration where the loop carries it there.
IdVector<engine::StepId, std::optional<engine::StepId>> find_readers(const Program& program,
                                                                     const MemoryAssignment& memory,
                                                                     const LoweredProgram& lowered);

/// What a host copy belongs to.
struct CopyLabel {
  std::string residual;             ///< its name, else its id; empty where it is part of none
  std::vector<std::string> names;   ///< its id and each of its names
  std::optional<LayerWalk> walk{};  ///< the layer it moves in each iteration, where that is known
  bool peeled = false;              ///< it stands outside the loop: XLA has peeled an iteration off
};

struct CopyLabels {
  IdVector<engine::StepId, CopyLabel> of_step;  ///< of copies across the host link
  /// The layer that each iteration of a loop works on, where the stacks it touches agree.
  IdVector<engine::StepId, std::optional<LayerWalk>> of_loop;
};

CopyLabels label_copies(const Program& program, const MemoryAssignment& memory,
                        const LoweredProgram& lowered, const ResidualTable& residuals);

/// An offload, its reload and the reload's reader, in this order; at least two of them. A reload of
/// what this step did not offload, such as a parameter, begins with the reload.
struct Flow {
  std::string name;
  std::vector<RunId> runs;
};

struct Flows {
  std::vector<Flow> all;
  std::int64_t reloads_without_offload =
      0;  ///< runs whose array no offload of the step is known for
};

Flows find_flows(const Program& program, const MemoryAssignment& memory,
                 const LoweredProgram& lowered, const CopyLabels& labels, const History& history);

}  // namespace spillway
