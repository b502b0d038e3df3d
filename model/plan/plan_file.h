// A plan as a file: what was decided for which program, what came out when it was simulated, and
// how to make it happen. Written by `plan --out` and `whatif --out`, read back by `verify`, which
// lays it beside what XLA then compiled. Schema spillway.plan_file/1; docs/verify.md.
//
// Figures are of one step on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/jaxlib_version.h"
#include "model/compare/inventory.h"
#include "model/cost/topology.h"
#include "model/plan/policy.h"

namespace spillway {

inline constexpr std::string_view kPlanFileSchema = "spillway.plan_file/1";

/// Which program a plan was made from. The fingerprint is of opcodes, shapes and operands; the rest
/// is what they share when only the policy differs.
struct ProgramIdentity {
  std::string name;         ///< of the module
  std::string fingerprint;  ///< of its instructions, shapes and operands: 16 hex digits
  std::int64_t instructions = 0;
  std::int64_t devices = 1;
  Bytes arguments;  ///< of one device, in HBM or on the host: state that moves stays in the sum
};

/// What becomes of one stack, or of one value a layer.
struct PlannedResidual {
  std::vector<std::string> names;  ///< none: it stays as it was compiled
  std::string shape;               ///< of one layer
  std::int64_t layers = 0;
  Bytes bytes;  ///< of all layers
  Choice choice = Choice::kKeep;
};

/// How much of a state class there is, and how much of it lies on the host.
struct PlannedState {
  StateClass kind = StateClass::kOptimizer;
  Bytes bytes, on_host;
};

/// Where a step's time goes.
struct StepTimes {
  Seconds step;
  Seconds kernels;  ///< of the main stream, gaps included
  Seconds exposed_offloads, exposed_reloads, exposed_collectives, exposed_slices;
  Seconds idle;
};

/// The parts of a step that most can be live in: of one that scans its layers, of one that does
/// not, and none where nothing runs.
inline constexpr std::string_view kPeakPhases[] = {"before the forward loop",
                                                   "forward loop",
                                                   "between the loops",
                                                   "backward loop",
                                                   "after the backward loop",
                                                   "forward",
                                                   "backward",
                                                   "update",
                                                   ""};

/// What a step holds, moves and takes: of a plan as predicted, of a compiled program as it is.
struct StepFigures {
  StepTimes times;
  MemoryTotals memory;
  Bytes offloaded, reloaded;
  double dot_flops = 0;
  Bytes live_peak;
  std::string peak_phase;        ///< of kPeakPhases: where most is live
  std::string peak_instruction;  ///< the one that runs then
  std::int64_t remat_clones = 0;
  /// Alike items together, largest first, no more than kListed.
  std::vector<Item> buffers, host_arrays, offloads, reloads, clones;

  static constexpr std::size_t kListed = 40;
};

/// What was allowed.
struct PlannedBudget {
  Bytes hbm, pool, reserve;
  Bytes host;                        ///< of a device, where its node has room for as much
  std::optional<Bytes> usable = {};  ///< of the pool, where holes are left out
  std::optional<Bytes> block = {};   ///< in one piece, where that is limited
};

/// A name and its value, as configurations have them.
using PlannedSetting = std::pair<std::string, std::string>;

struct PlanFile {
  ProgramIdentity program;
  std::string hardware;              ///< id of the profile
  std::optional<HostGrid> topology;  ///< where the user stated one
  std::optional<JaxlibVersion> jaxlib;
  /// The rate of copies where the host's memory is taken for pageable.
  std::optional<BytesPerSecond> pageable_copies = {};
  /// The profile of a run that times rest on, where they do not all come from the model.
  std::optional<std::string> anchored_on = {};
  PlannedBudget budget;
  bool fits = false;
  /// Every name with its choice, all names of one value and state classes among them.
  std::vector<std::pair<std::string, Choice>> policy;
  std::vector<PlannedResidual> residuals;
  std::vector<PlannedState> state;
  StepFigures predicted;
  std::vector<PlannedSetting> flags;              ///< of XLA, under which this is predicted
  std::vector<PlannedSetting> recommended_flags;  ///< what they do is not in the prediction
  std::vector<PlannedSetting> environment, maxtext;
  std::string jax_policy;  ///< an expression for jax.checkpoint(policy=…); may be empty
  std::string jax_state;   ///< Python that moves state; may be empty
};

/// Who a program is.
ProgramIdentity identify(const Program& program, const MemoryTotals& totals);

}  // namespace spillway
