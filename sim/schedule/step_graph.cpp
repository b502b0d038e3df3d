#include "sim/schedule/step_graph.h"

#include <algorithm>
#include <tuple>

#include "model/program/control_predecessors.h"

namespace spillway {
namespace {

/// Finds which computation two instructions have in common: an instruction in a loop's body stands,
/// further out, for the loop.
class CommonCaller {
 public:
  CommonCaller(const Program& program, const FlatSchedule& flat)
      : flat_(flat), depth_(program.computations.size(), 0) {
    // Whoever calls ends later than what it calls.
    std::vector<ComputationId> reached;
    for (const ComputationId id : ids(program.computations))
      if (flat.reaches(id)) reached.push_back(id);
    std::ranges::sort(reached, std::ranges::greater{},
                      [&](ComputationId id) { return flat.span[id].end; });
    for (const ComputationId id : reached)
      if (flat.caller[id]) depth_[id] = depth_[flat.caller[id]->computation] + 1;
  }

  void lift(InstructionId& a, InstructionId& b) const {
    while (a.computation != b.computation) {
      InstructionId& deeper = depth_[a.computation] > depth_[b.computation] ? a : b;
      const auto caller = flat_.caller[deeper.computation];
      check(caller.has_value(), "two instructions have no computation in common");
      deeper = *caller;
    }
  }

 private:
  const FlatSchedule& flat_;
  IdVector<ComputationId, std::uint32_t> depth_;
};

/// What makes the value that follows each in its buffer; empty for the last ones.
IdVector<ValueId, std::optional<InstructionId>> find_successors(const Lifetimes& given) {
  const auto& ranges = given.liveness.ranges;
  IdVector<ValueId, std::optional<InstructionId>> next(ranges.size());
  for (const Buffer& buffer : given.liveness.buffers) {
    if (buffer.values.size() < 2) continue;
    std::vector<ValueId> sorted = buffer.values;
    std::ranges::sort(sorted, {},
                      [&](ValueId v) { return std::tuple(ranges[v].start, ranges[v].end, v); });
    for (std::size_t k = 0; k + 1 < sorted.size(); ++k)
      next[sorted[k]] = given.values[sorted[k + 1]].defined_at.instruction;
  }
  return next;
}

class GraphMaker {
 public:
  GraphMaker(const Computation& computation, const std::vector<LogicalTime>& position,
             const std::vector<Precedence>& precedences)
      : computation_(computation), position_(position), precedences_(precedences) {
    for (const InstructionIndex i : computation.instructions()) order_.push_back(i);
    std::ranges::sort(order_, {}, [&](InstructionIndex i) { return position[i.index]; });
  }

  StepGraph make(bool join_async) {
    make_steps(join_async);
    std::vector<StepLists::Edge> users;
    for (const InstructionIndex i : order_)
      for (const Operand& operand : computation_.operands(i)) {
        wait(i, operand.instruction);
        if (step_of_[i.index] != step_of_[operand.instruction.index])
          users.push_back({step_of_[operand.instruction.index], step_of_[i.index]});
      }
    ControlPredecessors control(computation_);
    for (const InstructionIndex i : order_)
      for (const InstructionIndex other : control.of(i)) wait(i, other);
    for (const Precedence& p : precedences_) wait(p.then, p.first);
    const std::size_t steps = graph_.steps.size();
    graph_.before = StepLists(steps, steps, before_);
    graph_.after = StepLists(steps, steps, after_);
    graph_.users = StepLists(steps, steps, users);
    return std::move(graph_);
  }

 private:
  void make_steps(bool join_async) {
    step_of_.assign(computation_.size(), kNone);
    for (const InstructionIndex i : order_) {
      if (step_of_[i.index] != kNone) continue;
      const auto done = join_async ? done_of(i) : std::nullopt;
      step_of_[i.index] = static_cast<std::uint32_t>(graph_.steps.size());
      if (done) step_of_[done->index] = step_of_[i.index];
      graph_.steps.push_back({i, done});
    }
  }

  std::optional<InstructionIndex> done_of(InstructionIndex i) const {
    if (!is_async_start(computation_[i].opcode)) return std::nullopt;
    const auto done = find_done(computation_, i);
    if (!done || computation_.operands(*done)[0].instruction != i) return std::nullopt;
    return done;
  }

  void wait(InstructionIndex i, InstructionIndex other) {
    const std::uint32_t step = step_of_[i.index];
    const std::uint32_t first = step_of_[other.index];
    if (step == first || position_[i.index] < position_[other.index]) return;
    before_.push_back({step, first});
    after_.push_back({first, step});
  }

  static constexpr std::uint32_t kNone = ~0u;
  const Computation& computation_;
  const std::vector<LogicalTime>& position_;
  const std::vector<Precedence>& precedences_;
  std::vector<InstructionIndex> order_;
  std::vector<std::uint32_t> step_of_;
  std::vector<StepLists::Edge> before_, after_;
  StepGraph graph_;
};

bool is_acyclic(const StepGraph& graph) {
  std::vector<std::size_t> waits_for(graph.steps.size());
  std::vector<std::uint32_t> ready;
  for (std::uint32_t step = 0; step < graph.steps.size(); ++step) {
    waits_for[step] = graph.before[step].size();
    if (waits_for[step] == 0) ready.push_back(step);
  }
  std::size_t ran = 0;
  for (; !ready.empty(); ++ran) {
    const std::uint32_t step = ready.back();
    ready.pop_back();
    for (const std::uint32_t next : graph.after[step])
      if (--waits_for[next] == 0) ready.push_back(next);
  }
  return ran == graph.steps.size();
}

}  // namespace

StepLists::StepLists(std::size_t steps, std::size_t limit, const std::vector<Edge>& edges)
    : first_(steps + 1, 0) {
  for (const Edge& edge : edges) ++first_[edge.from + 1];
  for (std::size_t k = 1; k <= steps; ++k) first_[k] += first_[k - 1];
  std::vector<std::uint32_t> next = first_;
  std::vector<std::uint32_t> all(edges.size());
  for (const Edge& edge : edges) all[next[edge.from]++] = edge.to;
  std::vector<std::uint32_t> seen_by(limit, ~0u);
  items_.reserve(all.size());
  for (std::uint32_t step = 0, begin = 0; step < steps; ++step) {
    const std::uint32_t end = first_[step + 1];
    for (std::uint32_t k = begin; k < end; ++k) {
      if (seen_by[all[k]] == step) continue;
      seen_by[all[k]] = step;
      items_.push_back(all[k]);
    }
    begin = end;
    first_[step + 1] = static_cast<std::uint32_t>(items_.size());
  }
}

IdVector<ComputationId, std::vector<Precedence>> find_precedences(const Program& program,
                                                                  const Lifetimes& given) {
  const auto next = find_successors(given);
  const FlatSchedule& flat = given.schedule;
  const CommonCaller callers(program, flat);
  IdVector<ComputationId, std::vector<Precedence>> found(program.computations.size());
  const auto note = [&](InstructionId first, ValueId read) {
    if (!next[read]) return;
    InstructionId then = *next[read];
    callers.lift(first, then);
    const auto& position = flat.position[then.computation];
    if (position[first.instruction.index] < position[then.instruction.index])
      found[then.computation].push_back({first.instruction, then.instruction});
  };
  for (const InstructionId id : flat.order) {
    const Computation& computation = program[id.computation];
    if (is_free(computation[id.instruction])) continue;  // its users are asked instead
    for (const Operand& operand : computation.operands(id.instruction)) {
      const std::uint32_t nodes = computation.shape_of(operand).node_count();
      for (ShapeNodeIndex node = 0; node < nodes; ++node)
        note(id, given.values.at(id.computation, {operand.instruction, operand.node + node}));
    }
  }
  // Whoever makes a value comes before who makes the next, also where nobody reads in between.
  for (const ValueId value : ids(given.values.values()))
    note(given.values[value].defined_at.instruction, value);
  return found;
}

StepGraph make_step_graph(const Computation& computation, const std::vector<LogicalTime>& position,
                          const std::vector<Precedence>& precedences) {
  StepGraph graph = GraphMaker(computation, position, precedences).make(true);
  if (is_acyclic(graph)) return graph;
  // Something runs between a start and its done that neither can do without.
  return GraphMaker(computation, position, precedences).make(false);
}

}  // namespace spillway
