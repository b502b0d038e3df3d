#include "sim/schedule/default_order.h"

#include <algorithm>
#include <optional>

#include "model/memory/heap_replay.h"
#include "model/program/call_graph.h"
#include "sim/schedule/default_order/depth_first_order.h"
#include "sim/schedule/default_order/greedy_order.h"
#include "sim/schedule/default_order/start_early.h"

namespace spillway {
namespace {

constexpr DefaultScheduler kAll[] = {DefaultScheduler::kList, DefaultScheduler::kDepthFirst,
                                     DefaultScheduler::kPostOrder};

using Places = IdVector<ComputationId, std::vector<Operand>>;

Schedule without_elements(const Places& places) {
  Schedule schedule;
  schedule.order.resize(places.size());
  for (const ComputationId id : ids(places))
    for (const Operand& place : places[id])
      if (place.node == 0) schedule.order[id].push_back(place.instruction);
  return schedule;
}

class OrderFinder {
 public:
  OrderFinder(const Program& program, const Lifetimes& given)
      : program_(program),
        given_(given),
        precedences_(find_precedences(program, given)),
        graphs_(program.computations.size()) {
    const auto is_loop = inside_loops(program);
    for (const ComputationId id : ids(program.computations))
      if (given.schedule.reaches(id))
        graphs_[id] = make_order_graph(program, id, given.values, is_loop[id] != 0);
  }

  Places order_all(DefaultScheduler scheduler) const {
    Places places(program_.computations.size());
    for (const ComputationId id : ids(program_.computations))
      if (given_.schedule.reaches(id)) places[id] = order_one(id, scheduler);
    return places;
  }

 private:
  std::vector<Operand> order_one(ComputationId id, DefaultScheduler scheduler) const {
    std::vector<Operand> order = order_graph(id, scheduler, *graphs_[id]);
    ExtraOrder extra;
    while (add_broken(id, order, extra))
      order = order_graph(id, scheduler, graphs_[id]->with(extra));
    return order;
  }

  /// Whether an order breaks what must come before something else; `extra` then says so.
  bool add_broken(ComputationId id, const std::vector<Operand>& order, ExtraOrder& extra) const {
    std::vector<std::uint32_t> position(program_[id].size());
    for (std::uint32_t k = 0; k < order.size(); ++k)
      if (order[k].node == 0) position[order[k].instruction.index] = k;
    const std::size_t known = extra.size();
    for (const Precedence& p : precedences_[id])
      if (position[p.first.index] > position[p.then.index]) extra.push_back(p);
    return extra.size() > known;
  }

  std::vector<Operand> order_graph(ComputationId id, DefaultScheduler scheduler,
                                   const OrderGraph& graph) const {
    const Computation& computation = program_[id];
    NodeOrder order;
    switch (scheduler) {
      case DefaultScheduler::kList:
        order = greedy_order(graph);
        break;
      case DefaultScheduler::kDepthFirst:
        order = fan_out_order(computation, graph);
        break;
      case DefaultScheduler::kPostOrder:
        order = post_order(graph);
        break;
    }
    std::vector<Operand> places;
    places.reserve(order.size());
    for (const std::uint32_t node : start_early(computation, graph, order))
      places.push_back({graph.nodes()[node].instruction, graph.nodes()[node].element});
    return places;
  }

  const Program& program_;
  const Lifetimes& given_;
  const IdVector<ComputationId, std::vector<Precedence>> precedences_;
  IdVector<ComputationId, std::optional<OrderGraph>> graphs_;  ///< without the precedences
};

/// The most that is live at once in an order, without gaps: XLA's MinimumMemoryForModule. Host
/// memory and constants count nothing.
class LeastMemory {
 public:
  LeastMemory(const Program& program, const Lifetimes& given)
      : program_(program),
        given_(given),
        in_place_(program),
        sharing_(program, in_place_),
        liveness_(given.liveness) {
    for (const BufferId id : ids(given.liveness.buffers)) {
      const Buffer& buffer = given.liveness.buffers[id];
      if (is_host(buffer.space)) continue;
      const InstructionId definer = given.values[buffer.values.front()].defined_at.instruction;
      if (program[definer].opcode != Opcode::kConstant) buffers_.push_back(id);
    }
  }

  Bytes of(const Schedule& schedule) {
    const FlatSchedule flat = flatten(program_, schedule);
    liveness_.ranges = find_live_ranges(program_, flat, given_.values, given_.liveness);
    const HeapPlan plan = replay_heap(program_, given_.values, liveness_, buffers_, sharing_);
    std::vector<std::int64_t> changes;
    for (const HeapItem& item : plan.items)
      for (const HeapItem::Use& use : item.uses) {
        const auto end = static_cast<std::size_t>(use.end);
        if (changes.size() <= end) changes.resize(end + 1, 0);
        changes[static_cast<std::size_t>(use.start)] += use.size.value();
        changes[end] -= use.size.value();
      }
    std::int64_t live = 0, most = 0;
    for (const std::int64_t change : changes) most = std::max(most, live += change);
    return Bytes(most);
  }

 private:
  const Program& program_;
  const Lifetimes& given_;
  InPlacePairs in_place_;
  OperandSharing sharing_;
  Liveness liveness_;
  std::vector<BufferId> buffers_;
};

}  // namespace

std::string_view name_of(DefaultScheduler scheduler) {
  switch (scheduler) {
    case DefaultScheduler::kList:
      return "list";
    case DefaultScheduler::kDepthFirst:
      return "depth first";
    case DefaultScheduler::kPostOrder:
      return "post-order";
  }
  return "";
}

Bytes most_live_in(const Program& program, const Lifetimes& given, const Schedule& schedule) {
  return LeastMemory(program, given).of(schedule);
}

Schedule order_by(const Program& program, const Lifetimes& given, DefaultScheduler scheduler) {
  return without_elements(OrderFinder(program, given).order_all(scheduler));
}

DefaultOrder find_default_order(const Program& program, const Lifetimes& given) {
  const OrderFinder finder(program, given);
  LeastMemory least(program, given);
  DefaultOrder best;
  std::optional<Bytes> best_peak;
  for (const DefaultScheduler scheduler : kAll) {
    Places places = finder.order_all(scheduler);
    Schedule schedule = without_elements(places);
    const Bytes peak = least.of(schedule);
    best.most_live[static_cast<std::size_t>(scheduler)] = peak;
    if (best_peak && *best_peak <= peak) continue;
    best_peak = peak;
    best.schedule = std::move(schedule);
    best.places = std::move(places);
    best.scheduler = scheduler;
  }
  return best;
}

}  // namespace spillway
