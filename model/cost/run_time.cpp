#include "model/cost/run_time.h"

#include <algorithm>

#include "model/program/call_graph.h"

namespace spillway {
namespace {

template <typename Time>
Time sum_called(const Program& program, InstructionId caller,
                const IdVector<ComputationId, Time>& times, BranchTaken taken) {
  const Computation& computation = program[caller.computation];
  const auto called = computation.called(caller.instruction);
  const auto of_called = [&](ComputationId id) { return times[id]; };
  switch (computation[caller.instruction].opcode) {
    case Opcode::kWhile: {
      const auto trips = known_trip_count(computation, caller.instruction);
      if (!trips) return times[called[1]] + times[called[0]];
      return times[called[1]] * static_cast<double>(*trips);
    }
    case Opcode::kConditional:
      return taken == BranchTaken::kLongest
                 ? times[*std::ranges::max_element(called, {}, of_called)]
                 : times[*std::ranges::min_element(called, {}, of_called)];
    default:
      return times[called[0]];
  }
}

}  // namespace

IdVector<ComputationId, Seconds> run_times(const Program& program, const CostTable& costs,
                                           BranchTaken taken,
                                           const std::function<Seconds(InstructionId)>& time_of) {
  // Whole numbers up to 2^53 add up exactly: the result does not depend on the order.
  IdVector<ComputationId, double> picoseconds(program.computations.size(), 0);
  for (const ComputationId id : computation_post_order(program)) {
    if (!costs.contains(id)) continue;
    for (const InstructionIndex i : program[id].instructions())
      picoseconds[id] += is_control_flow(program[id][i].opcode)
                             ? sum_called(program, {id, i}, picoseconds, taken)
                             : static_cast<double>(to_sim_time(time_of({id, i})).value());
  }
  IdVector<ComputationId, Seconds> times(picoseconds.size());
  for (const ComputationId id : ids(picoseconds)) times[id] = Seconds(picoseconds[id] * 1e-12);
  return times;
}

Seconds time_of_called(const Program& program, InstructionId caller,
                       const IdVector<ComputationId, Seconds>& run_times, BranchTaken taken) {
  return sum_called(program, caller, run_times, taken);
}

}  // namespace spillway
