#include "model/cost/program_flops.h"

#include <algorithm>
#include <limits>

namespace spillway {
namespace {

bool runs_what_it_calls(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAsyncStart:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kWhile:
      return true;
    default:
      return false;
  }
}

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

/// a + b * c, at most 2^63 - 1: a damaged trip count must not wrap around.
std::int64_t saturating_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0, sum = 0;
  const bool overflows =
      __builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(a, product, &sum);
  return overflows ? std::numeric_limits<std::int64_t>::max() : sum;
}

}  // namespace

std::vector<Executed> executed_computations(const Program& program) {
  IdVector<ComputationId, std::int64_t> runs(program.computations.size(), 0);
  runs[program.entry] = 1;
  std::vector<Executed> executed;
  for (const ComputationId id : Walk(program).callers_first()) {
    executed.push_back({id, runs[id]});
    const Computation& computation = program[id];
    for (const InstructionIndex i : computation.instructions()) {
      const Opcode opcode = computation[i].opcode;
      if (!runs_what_it_calls(opcode)) continue;
      const bool loops = opcode == Opcode::kWhile;
      const std::int64_t times = loops ? known_trip_count(computation, i).value_or(1) : 1;
      for (const ComputationId callee : computation.called(i))
        runs[callee] = saturating_add(runs[callee], runs[id], times);
    }
  }
  return executed;
}

ProgramFlops sum_flops(const Program& program, const IdVector<ComputationId, OpCount>& ops) {
  ProgramFlops flops;
  const std::vector<Executed> executed = executed_computations(program);
  for (const auto& [id, count] : executed) {
    const OpCount& own = ops[id];
    const auto runs = static_cast<double>(count);
    flops.dot_per_step += runs * own.dot_flops;
    flops.attention_per_step += runs * own.attention_flops;
    flops.unmasked_attention_per_step += runs * own.unmasked_attention_flops;
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
