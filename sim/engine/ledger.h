// The accounts of a run: what each step, wait and resource has added up to. They can be marked, and
// what was added since the mark can be added again: that is how a loop is extended.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/result.h"
#include "sim/engine/sharing.h"
#include "sim/engine/task_table.h"

namespace spillway::engine {

/// The accounts that an iteration of a loop can touch, at one moment.
struct LedgerMark {
  StepId first;
  std::vector<StepStats> steps;  // from `first` on
  std::vector<SimTime> shares;   // of these steps, in order of their lists
  std::size_t share_count = 0;   // shares that existed; later ones started at zero
  std::vector<ResourceStats> resources;
};

class Ledger {
 public:
  explicit Ledger(const EngineProgram& program)
      : steps_(program.steps.size()),
        first_share_(program.steps.size(), kNoShare),
        meters_(program.resources.size()) {}

  StepStats& step(StepId id) { return steps_[id]; }

  /// Adds to the stall of a wait. `culprit` is the step in front or the resource, by cause.
  void charge(StepId wait, StallCause cause, std::uint32_t culprit, SimTime time);

  void use_began(std::span<const Load> loads, SimTime now);
  void use_ended(std::span<const Load> loads, SimTime now);
  /// From `now` on, these are the tasks that resources hold back.
  void limits_changed(std::span<const Contender> running, SimTime now);

  /// Marks the resources and the steps [first, end).
  void mark(LedgerMark& mark, StepId first, StepId end, SimTime now);
  /// Adds `times` more what has been added since the mark, and moves on to `now` + `by`.
  void repeat(const LedgerMark& mark, std::int64_t times, SimTime now, SimTime by);

  /// Moves the steps into `result` and adds up what follows from them.
  void close(const EngineProgram& program, const TaskTable& tasks, EngineResult& result) &&;

 private:
  static constexpr std::uint32_t kNoShare = 0xffff'ffff;
  struct Share {
    StallCause cause = StallCause::kFullSpeed;
    std::uint32_t culprit = 0;
    std::uint32_t next = kNoShare;
    SimTime time;
  };
  struct Meter {
    ResourceStats totals;
    int users = 0;
    bool limiting = false;
    SimTime used_since;
    SimTime limiting_since;
  };

  void settle(SimTime now);
  void append_shares(StepId wait, EngineResult& result) const;

  IdVector<StepId, StepStats> steps_;
  IdVector<StepId, std::uint32_t> first_share_;  // a linked list for each wait, through shares_
  std::vector<Share> shares_;
  IdVector<ResourceId, Meter> meters_;
};

}  // namespace spillway::engine
