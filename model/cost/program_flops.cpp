#include "model/cost/program_flops.h"

#include <algorithm>

#include "model/program/call_graph.h"

namespace spillway {
namespace {

/// Post order over what runs by itself: callees first.
class Walk {
 public:
  explicit Walk(const Program& program)
      : program_(program), seen_(program.computations.size(), false) {}

  std::vector<ComputationId> callers_first() {
    visit(program_.entry);
    std::ranges::reverse(order_);
    return std::move(order_);
  }

 private:
  void visit(ComputationId id) {
    if (seen_[id.index]) return;
    seen_[id.index] = true;
    const Computation& computation = program_[id];
    for (const InstructionIndex i : computation.instructions())
      if (runs_what_it_calls(computation[i].opcode))
        for (const ComputationId callee : computation.called(i)) visit(callee);
    order_.push_back(id);
  }

  const Program& program_;
  std::vector<bool> seen_;
  std::vector<ComputationId> order_;
};

/// A conditional counts its most expensive branch, as XLA has it.
Flops xla_flops_called(const Computation& computation, InstructionIndex i,
                       const IdVector<ComputationId, Flops>& of) {
  Flops sum, largest;
  for (const ComputationId callee : computation.called(i)) {
    sum += of[callee];
    largest = std::max(largest, of[callee]);
  }
  return computation[i].opcode == Opcode::kConditional ? largest : sum;
}

Flops xla_flops(const Program& program, const std::vector<Executed>& executed,
                const IdVector<ComputationId, OpCount>& ops) {
  IdVector<ComputationId, Flops> of(program.computations.size());
  for (auto at = executed.rbegin(); at != executed.rend(); ++at) {
    const Computation& computation = program[at->id];
    const OpCount& own = ops[at->id];
    of[at->id] = own.vector_flops + own.dot_flops - own.library_flops;
    for (const InstructionIndex i : computation.instructions())
      if (runs_what_it_calls(computation[i].opcode))
        of[at->id] += xla_flops_called(computation, i, of);
  }
  return of[program.entry];
}

}  // namespace

std::vector<Executed> executed_computations(const Program& program) {
  const Multiplicity times = multiplicity(program, runs_what_it_calls);
  std::vector<Executed> executed;
  for (const ComputationId id : Walk(program).callers_first())
    executed.push_back({id, times.runs[id]});
  return executed;
}

ProgramFlops sum_flops(const Program& program, const IdVector<ComputationId, OpCount>& ops) {
  ProgramFlops flops;
  const std::vector<Executed> executed = executed_computations(program);
  for (const auto& [id, count] : executed) {
    const OpCount& own = ops[id];
    const auto runs = static_cast<double>(count);
    flops.dot_per_step += runs * own.dot_flops;
    flops.all_per_step += runs * (own.dot_flops + own.attention_flops + own.vector_flops);
  }
  flops.xla_cost_analysis = xla_flops(program, executed, ops);
  return flops;
}

ProgramFlops count_flops(const Program& program) {
  IdVector<ComputationId, OpCount> ops(program.computations.size());
  for (const Executed& executed : executed_computations(program))
    ops[executed.id] = count_ops(program, executed.id);
  return sum_flops(program, ops);
}

}  // namespace spillway
