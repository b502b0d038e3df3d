// What would hide a copy, found by simulating each change.
#pragma once

#include <string>
#include <vector>

#include "sim/explain/edit_steps.h"
#include "sim/main_work.h"
#include "sim/prepared_step.h"
#include "sim/step_neighbours.h"

namespace spillway {

enum class RemedyKind : std::uint8_t {
  kEarlierStart,   ///< the start moves up in its stretch of the schedule
  kLaterDone,      ///< the wait moves down
  kBoth,           ///< both as far as they may
  kNextIteration,  ///< it may take until the next iteration: pipelined host offloading
  kFasterLink,     ///< the host link, or for a collective the fabric
  kMoreCompute,    ///< the kernels between start and wait take longer
};
/// "earlier-start", …
std::string_view name_of(RemedyKind kind);

/// One change, and the step with it.
struct Remedy {
  RemedyKind kind = RemedyKind::kEarlierStart;
  bool possible = false;  ///< else `limit` says why not
  bool hides = false;     ///< at most 1 % of what was exposed still is; of a pipeline, its ends
  Seconds exposed{};      ///< of this copy, of a step
  Seconds step{};         ///< the whole step
  /// Moves: the least that hides it, or as far as it goes.
  Seconds moved{};      ///< kernels that it moves across, of one iteration
  std::string at{};     ///< the instruction in front of which it then stands
  std::string limit{};  ///< what it cannot pass
  /// Factors: the least that hides it, or the largest that was tried.
  double factor = 1;
  BytesPerSecond rate{};  ///< kFasterLink: of this direction, alone
  Seconds kernels_now{},
      kernels_then{};  ///< kMoreCompute: between start and wait, of one iteration
};

/// The copy whose remedies are looked for.
struct Target {
  engine::StepId start;
  std::vector<engine::StepId> starts;  ///< all that hand over to the same waits
  std::vector<engine::StepId> waits;
};

class RemedyFinder {
 public:
  RemedyFinder(const Program& program, const MemoryAssignment& memory, const PreparedStep& prepared,
               const engine::EngineResult& run);

  Target find_target(engine::StepId start) const;
  Seconds exposed_now(const Target& target) const;

  /// In the order of RemedyKind; without those that make no sense for this copy.
  std::vector<Remedy> find(const Target& target) const;

  /// The slowest link, as a factor of today's, with which a copy that is hidden stays so.
  double slowest_link(const Target& target) const;


 private:
  struct Outcome {
    Seconds exposed, step;
  };
  struct Room {
    engine::StepId end;  ///< how far it may go: in front of this step
    std::string limit;
  };

  Outcome simulate(const engine::EngineProgram& steps,
                   const IdVector<engine::StepId, engine::StepId>* original,
                   const Target& target) const;
  Outcome simulate(const StepEdits& edits, const Target& target) const;
  bool hides(const Outcome& outcome, const Target& target) const;
  void fill(Remedy& remedy, const Outcome& outcome, const Target& target) const;

  Room room_before(const Target& target) const;
  Room room_behind(const Target& target) const;
  StepEdits move(const Target& target, engine::StepId start_at, engine::StepId wait_at) const;
  Remedy earlier_start(const Target& target) const;
  Remedy later_done(const Target& target) const;
  Remedy both(const Target& target) const;
  std::optional<Remedy> next_iteration(const Target& target) const;
  Remedy faster_link(const Target& target) const;
  Remedy more_compute(const Target& target) const;

  engine::EngineProgram with_link(const Target& target, double factor) const;
  engine::EngineProgram with_kernels(const Target& target, double factor) const;
  std::pair<engine::StepId, engine::StepId> kernels_beside(const Target& target) const;
  template <typename Change>
  std::pair<double, Outcome> least_factor(const Target& target, double most, Change change) const;

  const StepOrigin& origin(engine::StepId step) const { return lowered_.origins[step]; }
  std::string name(engine::StepId step) const;
  std::string edge_of(engine::StepId inside, bool begin) const;

  const Program& program_;
  const MemoryAssignment& memory_;
  const LoweredProgram& lowered_;
  const engine::EngineResult& run_;
  StepNeighbours neighbours_;
  MainWork work_;
  IdVector<engine::StepId, std::optional<engine::StepId>> loops_, readers_;
};

}  // namespace spillway
