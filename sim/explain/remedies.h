// What would hide a copy, found by simulating each change.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/explain/edit_steps.h"
#include "sim/explain/room.h"
#include "sim/explain/target.h"
#include "sim/main_work.h"
#include "sim/prepared_step.h"

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

/// One change, and the step with it. Times are of one step.
struct Remedy {
  RemedyKind kind = RemedyKind::kEarlierStart;
  bool possible = false;  ///< else `limit` says why not
  /// Its own waits are gone: at most 1 % of what was exposed still is; of a pipeline, its ends.
  bool ends_waits = false;
  /// That, and the time is gained: the step is shorter by at least half of the waits that are gone.
  /// Else others wait in its place.
  bool hides = false;
  Seconds exposed{};  ///< of this copy
  Seconds step{};     ///< the whole step
  Seconds gain{};     ///< of the step; more compute: beyond what the kernels take longer
  /// Moves: the least that ends its waits, or as far as it goes.
  Seconds moved{};      ///< kernels that it moves across, of one iteration
  std::string at{};     ///< the instruction in front of which it then stands
  std::string limit{};  ///< what it cannot pass
  /// Factors: the least that ends its waits, or the largest that was tried.
  double factor = 1;
  BytesPerSecond rate{};  ///< kFasterLink: of this direction, alone
  Seconds kernels_now{},
      kernels_then{};  ///< kMoreCompute: between start and wait, of one iteration
};

class RemedyFinder {
 public:
  RemedyFinder(const Program& program, const MemoryAssignment& memory, const PreparedStep& prepared,
               const engine::EngineResult& run);

  /// In the order of RemedyKind; without those that make no sense for this copy.
  std::vector<Remedy> find(const Target& target) const;

  /// The slowest rate of this copy alone, as a factor of today's in [1/64, 1], at which no
  /// picosecond of it is exposed and nobody waits longer, but for 1 % of what the copy takes. 1 %
  /// too high at most.
  double slowest_rate(const Target& target) const;

 private:
  struct Outcome {
    Seconds exposed, step;
    Seconds waits;  ///< of everybody
  };

  /// `original` of edited steps, null where they are those of the program.
  Outcome simulate(const engine::EngineProgram& steps,
                   const IdVector<engine::StepId, engine::StepId>* original,
                   const Target& target) const;
  Outcome simulate(const StepEdits& edits, const Target& target) const;
  bool ends_waits(const Outcome& outcome, const Target& target) const;
  /// `more_work`: what the change adds to the step by itself.
  void fill(Remedy& remedy, const Outcome& outcome, const Target& target,
            Seconds more_work = Seconds(0)) const;

  StepEdits move(const Target& target, engine::StepId start_at, engine::StepId wait_at) const;
  Remedy earlier_start(const Target& target) const;
  Remedy later_done(const Target& target) const;
  Remedy both(const Target& target) const;
  std::optional<Remedy> next_iteration(const Target& target) const;
  Remedy faster_link(const Target& target) const;
  Remedy more_compute(const Target& target) const;

  std::pair<engine::StepId, engine::StepId> kernels_beside(const Target& target) const;
  template <typename Change>
  std::pair<double, Outcome> least_factor(const Target& target, double most, Change change) const;

  const StepOrigin& origin(engine::StepId step) const { return lowered_.origins[step]; }

  const Program& program_;
  const MemoryAssignment& memory_;
  const LoweredProgram& lowered_;
  const engine::EngineResult& run_;
  MainWork work_;
  RoomFinder room_;
};

}  // namespace spillway
