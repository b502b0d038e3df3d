#include "sim/lowering/run_time.h"

#include <algorithm>

#include "model/program/call_graph.h"

namespace spillway {

IdVector<ComputationId, Seconds> run_times(const Program& program, const CostTable& costs,
                                           BranchTaken taken,
                                           const std::function<Seconds(InstructionId)>& time_of) {
  // Whole numbers up to 2^53 add up exactly: the result does not depend on the order.
  IdVector<ComputationId, double> picoseconds(program.computations.size(), 0);
  const auto of_called = [&](ComputationId called) { return picoseconds[called]; };
  for (const ComputationId id : computation_post_order(program)) {
    if (!costs.contains(id)) continue;
    const Computation& computation = program[id];
    for (const InstructionIndex i : computation.instructions()) {
      const auto called = computation.called(i);
      const Opcode opcode = computation[i].opcode;
      if (opcode == Opcode::kWhile) {
        const auto trips = known_trip_count(computation, i);
        picoseconds[id] += picoseconds[called[1]] * static_cast<double>(trips.value_or(1));
        if (!trips) picoseconds[id] += picoseconds[called[0]];
      } else if (opcode == Opcode::kCall) {
        picoseconds[id] += picoseconds[called[0]];
      } else if (opcode == Opcode::kConditional) {
        picoseconds[id] += taken == BranchTaken::kLongest
                               ? of_called(*std::ranges::max_element(called, {}, of_called))
                               : of_called(*std::ranges::min_element(called, {}, of_called));
      } else {
        picoseconds[id] += static_cast<double>(to_sim_time(time_of({id, i})).value());
      }
    }
  }
  IdVector<ComputationId, Seconds> times(picoseconds.size());
  for (const ComputationId id : ids(picoseconds)) times[id] = Seconds(picoseconds[id] * 1e-12);
  return times;
}

}  // namespace spillway
