#include "sim/schedule/latency_hiding.h"

#include "model/program/call_graph.h"

namespace spillway {
namespace {

bool hides_anything(const Program& program, ComputationId id) {
  for (const InstructionIndex i : program[id].instructions())
    if (const auto operation = async_operation(program, {id, i}); operation && operation->is_hidden)
      return true;
  return false;
}

}  // namespace

Schedule hide_latencies(const Program& program, const Lifetimes& given,
                        const IdVector<ComputationId, ElementOrder>& orders,
                        const LatencyEstimator& estimator, const LatencyHidingLimits& limits) {
  const ScheduleInput input{program, given.values, given.liveness, estimator};
  const CountedBuffers buffers(program, given.schedule, given.values, given.liveness);
  ProgramPressure pressure = find_pressure(buffers, orders);
  IdVector<ComputationId, ResourceCounts> needs_of(program.computations.size());
  Schedule schedule;
  schedule.order.resize(program.computations.size());
  for (const ComputationId id : computation_post_order(program)) {
    if (!given.schedule.reaches(id)) continue;
    auto& order = schedule.order[id];
    if (hides_anything(program, id)) {
      const ScheduleGraph graph = make_schedule_graph(input, id, orders[id], needs_of);
      HiddenOrder hidden =
          hide_latencies_in(input, buffers, pressure, id, orders[id], graph, limits);
      order = std::move(hidden.order);
      pressure.peak[id] = hidden.peak;
    } else {
      for (const Operand& place : orders[id])
        if (place.node == 0) order.push_back(place.instruction);
    }
    needs_of[id] = resources_at_once(program, id, order, needs_of);
  }
  return schedule;
}

}  // namespace spillway
