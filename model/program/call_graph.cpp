#include "model/program/call_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <limits>

#include "model/program/control_predecessors.h"

namespace spillway {
namespace {

using CallGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

/// An edge from each caller to what it calls, in text order.
CallGraph make_call_graph(const Program& program) {
  CallGraph graph(program.computations.size());
  for (const ComputationId id : ids(program.computations))
    for (const ComputationId callee : program[id].parts().called)
      boost::add_edge(id.index, callee.index, graph);
  return graph;
}

struct CycleFinder : boost::dfs_visitor<> {
  explicit CycleFinder(std::optional<ComputationId>& out) : found(&out) {}
  template <typename Edge, typename Graph>
  void back_edge(Edge edge, const Graph& graph) {
    if (!*found) *found = ComputationId(boost::target(edge, graph));
  }
  std::optional<ComputationId>* found;
};

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

}  // namespace

std::optional<ComputationId> find_call_cycle(const Program& program) {
  std::optional<ComputationId> found;
  boost::depth_first_search(make_call_graph(program), boost::visitor(CycleFinder(found)));
  return found;
}

std::vector<ComputationId> computation_post_order(const Program& program) {
  // Depth first from each computation, callees in the order of the text; every policy of a what-if
  // asks for it several times.
  std::vector<ComputationId> order;
  order.reserve(program.computations.size());
  IdVector<ComputationId, std::uint8_t> seen(program.computations.size(), 0);
  struct Frame {
    ComputationId id;
    std::size_t next = 0;  ///< of what it calls
  };
  std::vector<Frame> stack;
  const auto enter = [&](ComputationId id) {
    if (seen[id]) return;
    seen[id] = 1;
    stack.push_back({id});
  };
  for (const ComputationId start : ids(program.computations)) {
    enter(start);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const std::vector<ComputationId>& called = program[frame.id].parts().called;
      if (frame.next < called.size()) {
        enter(called[frame.next++]);
      } else {
        order.push_back(frame.id);
        stack.pop_back();
      }
    }
  }
  return order;
}

std::vector<InstructionIndex> instruction_post_order(const Computation& computation) {
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  std::vector<State> state(computation.size(), State::kNew);
  std::vector<InstructionIndex> order;
  order.reserve(computation.size());
  std::vector<InstructionIndex> stack;
  ControlPredecessors control_predecessors(computation);
  for (const InstructionIndex start : computation.instructions()) {
    if (!computation.uses(start).empty()) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      const InstructionIndex i = stack.back();
      if (state[i.index] != State::kNew) {
        stack.pop_back();
        if (state[i.index] == State::kOpen) order.push_back(i);
        state[i.index] = State::kDone;
        continue;
      }
      state[i.index] = State::kOpen;
      const auto operands = computation.operands(i);
      for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand)
        if (state[operand->instruction.index] == State::kNew) stack.push_back(operand->instruction);
      for (const InstructionIndex before : control_predecessors.of(i))
        if (state[before.index] == State::kNew) stack.push_back(before);
    }
  }
  return order;
}

IdVector<ComputationId, std::vector<InstructionId>> callers(const Program& program) {
  IdVector<ComputationId, std::vector<InstructionId>> sites(program.computations.size());
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      for (const ComputationId callee : program[id].called(i)) sites[callee].push_back({id, i});
  return sites;
}

Multiplicity multiplicity(const Program& program, bool (*follows)(Opcode)) {
  Multiplicity result;
  result.runs = IdVector<ComputationId, std::int64_t>(program.computations.size(), 0);
  result.runs[program.entry] = 1;
  std::vector<ComputationId> order = computation_post_order(program);
  std::ranges::reverse(order);  // callers before callees
  for (const ComputationId id : order) {
    const std::int64_t runs = result.runs[id];
    if (runs == 0) continue;
    const Computation& computation = program[id];
    if (computation.parts().called.empty()) continue;
    for (const InstructionIndex i : computation.instructions()) {
      const auto called = computation.called(i);
      if (called.empty() || (follows && !follows(computation[i].opcode))) continue;
      std::int64_t times = 1;
      if (computation[i].opcode == Opcode::kWhile) {
        const auto count = known_trip_count(computation, i);
        if (!count) result.unknown_trip_counts.push_back({id, i});
        times = count.value_or(1);
      }
      for (const ComputationId callee : called)
        result.runs[callee] = saturating_sum(result.runs[callee], saturating_product(runs, times));
    }
  }
  return result;
}

ComputationId body_of(const Program& program, InstructionId loop) {
  check(program[loop].opcode == Opcode::kWhile, "only loops have bodies");
  return program[loop.computation].called(loop.instruction)[1];
}

IdVector<ComputationId, std::uint8_t> inside_loops(const Program& program) {
  IdVector<ComputationId, std::uint8_t> inside(program.computations.size(), 0);
  std::vector<ComputationId> callers_first = computation_post_order(program);
  std::ranges::reverse(callers_first);
  for (const ComputationId id : callers_first) {
    if (program[id].parts().called.empty()) continue;
    for (const InstructionIndex i : program[id].instructions())
      for (const ComputationId callee : program[id].called(i))
        if (inside[id] != 0 || program[id][i].opcode == Opcode::kWhile) inside[callee] = 1;
  }
  return inside;
}

}  // namespace spillway
