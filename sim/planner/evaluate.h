// What a policy gives: the program rewritten, its memory assigned, one step simulated. The same
// code for every policy, the compiled one included.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "model/flags/flag_settings.h"
#include "model/plan/budget.h"
#include "model/plan/policy.h"
#include "sim/planner/recomputed_bases.h"
#include "sim/planner/state_bases.h"
#include "sim/rewrite/place_residuals.h"
#include "sim/rewrite/recompute.h"
#include "sim/rewrite/unrolled.h"
#include "sim/schedule/reorder.h"
#include "sim/simulate.h"

namespace spillway {

/// A policy and what came out.
struct PolicyCase {
  Policy policy;
  Seconds step;
  Bytes peak_device;  ///< what the allocator must provide
  Bytes host;
  Bytes device_to_host, host_to_device;  ///< of a step
  Seconds exposed_copies;
  double dot_flops = 0;
  Bytes largest_block = {};  ///< that the allocator has to give in one piece
  Fit fit;
  Bytes missed = {};  ///< of the budget, in all
};

/// What an order under a profile assumes, for people.
inline constexpr std::string_view kProfileStandsIn =
    "XLA's profile has the cost model's own times for every policy's program, as plan --pgle "
    "writes them; the file is not read";

struct EvaluatorOptions {
  std::optional<CopyStreams> copy_streams = {};  ///< of the XLA that compiles it, where known
  /// Costs of this program, or of one that it was made of: what has not changed since keeps them,
  /// measured times among them.
  const CostTable* base = nullptr;
  /// Names of unrolled layers that are to have several handles; what is none changes nothing.
  std::vector<LayerGroup> split = {};
};

/// A program with everything that does not depend on the policy. The program and the profile must
/// outlive it.
class Evaluator {
 public:
  Evaluator(const Program& program, const Schedule& schedule, const HardwareProfile& profile,
            const Topology& topology, const NameList& names, const Budget& budget,
            const EvaluatorOptions& options = {});

  const Program& program() const { return program_; }
  const HardwareProfile& profile() const { return profile_; }
  const Topology& topology() const { return topology_; }
  const Budget& budget() const { return budget_; }
  std::optional<CopyStreams> copy_streams() const { return copy_streams_; }
  /// Of the program as compiled.
  const CostTable& cost_table() const { return costs_; }
  /// The same where nothing was measured, else no more than any policy's: what a policy makes anew
  /// has the model's time again, which may be the shorter one.
  bool is_anchored() const { return least_costs_.has_value(); }  ///< on measured times
  const CostTable& least_costs() const { return least_costs_ ? *least_costs_ : costs_; }
  const std::vector<Handle>& handles() const { return handles_; }
  /// Of the program, at least one.
  std::size_t instruction_count() const {
    return std::max<std::size_t>(1, program_.instruction_count());
  }
  /// Of the program as compiled.
  const MemoryAssignment& memory() const { return memory_; }
  const ResidualTable& residuals() const { return residuals_; }
  const TrainingState& state() const { return state_; }
  /// Empty where the layers are scanned.
  const UnrolledTable& unrolled() const { return unrolled_; }

  /// What of the flags decides an order, as XLA has it by default on this machine.
  ScheduleSettings default_order() const;

  /// The program under a policy, copies placed by the rule of place_residuals.h and nothing ordered
  /// anew. Thread-safe, as all that follow.
  Program change(const Policy& policy) const;
  /// The same. Where layers are not scanned, in the order that XLA would make of it under its
  /// default flags.
  Program rewrite(const Policy& policy) const;
  /// The same in the order that `evaluate` simulates; refused what that refuses.
  Result<Program> rewrite(const Policy& policy, const ScheduleSettings& settings) const;
  /// An error: it cannot be simulated (simulate.h).
  Result<PolicyCase> evaluate(const Policy& policy) const;
  /// As plans have it: the compiled policy in the order of its program, others in XLA's under
  /// `order`.
  Result<PolicyCase> evaluate_planned(const Policy& policy, const ScheduleSettings& order) const;
  Result<Program> rewrite_planned(const Policy& policy, const ScheduleSettings& order) const;
  /// The same of unrolled layers with `handles` that are parts of this one's (split_layers).
  Result<PolicyCase> evaluate_split(const std::vector<Handle>& handles, const Policy& policy,
                                    const ScheduleSettings& order) const;
  /// The same, ordered anew as XLA would under flags; by a profile, as by one of the cost model's
  /// own times (write_pgle.h). Refused: pipelining where the policy is not the compiled one.
  Result<PolicyCase> evaluate(const Policy& policy, const ScheduleSettings& settings) const;
  /// One step of a program that was made of this one, in the order of its text.
  Result<SimResult> simulate_program(const Program& program) const;

 private:
  struct Ordered {
    Program program;
    Schedule schedule;
  };
  Result<Ordered> order(Program planned, const ScheduleSettings& settings) const;
  Program change_unrolled(const std::vector<Handle>& handles, const Policy& policy) const;
  Program rewrite_residuals(const Program& program, const Lifetimes& memory,
                            const ResidualTable& residuals, const RecomputeRewrite& recompute,
                            std::vector<ResidualId> recomputed,
                            const std::vector<PlacementChange>& changes) const;
  PolicyCase case_of(const Policy& policy, const SimResult& sim) const;
  Result<PolicyCase> run(const Policy& policy, const Program& program,
                         const Schedule& schedule) const;
  /// What `plan --pgle` would write for a program, in the form that XLA orders.
  ProfiledInstructions modelled_profile(const Program& planned) const;
  XlaOrderOptions order_options(const ScheduleSettings& settings, const MemoryTotals& totals) const;

  const Program& program_;
  const HardwareProfile& profile_;
  Topology topology_;
  Budget budget_;
  std::optional<CopyStreams> copy_streams_;  ///< of the XLA that compiles it, where known
  MemoryAssignment memory_;
  ResidualTable residuals_;
  TrainingState state_;
  StateBases state_bases_;
  UnrolledTable unrolled_;
  std::vector<Handle> handles_;  ///< names first, then state
  CostTable costs_;
  std::optional<CostTable> least_costs_;
  RecomputeRewrite recompute_;
  RecomputedBases recomputed_bases_;
  UnrolledRewrite unrolled_rewrite_;
};

}  // namespace spillway
