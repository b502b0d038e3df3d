#include "model/memory/flat_schedule.h"

#include <algorithm>

namespace spillway {
namespace {

class Flattener {
 public:
  Flattener(const Program& program, const Schedule& schedule)
      : program_(program), schedule_(schedule) {
    const std::size_t n = program.computations.size();
    flat_.position.resize(n);
    flat_.span.resize(n);
    flat_.caller.resize(n);
    flat_.async_done.resize(n);
    wrapped_by_.resize(n);
    flat_.order.reserve(program.instruction_count());
  }

  FlatSchedule run() {
    visit(program_.entry, std::nullopt);
    for (const ComputationId id : ids(program_.computations)) {
      if (!wrapped_by_[id]) continue;
      const InstructionId start = *wrapped_by_[id];
      if (const auto done = find_done(program_[start.computation], start.instruction))
        flat_.async_done[id] = flat_.position[start.computation][done->index];
    }
    return std::move(flat_);
  }

 private:
  /// `wrapper` is the async start around this computation, if any.
  void visit(ComputationId id, std::optional<InstructionId> wrapper) {
    if (flat_.reaches(id)) return;
    const Computation& computation = program_[id];
    auto& position = flat_.position[id];
    position.resize(computation.size());
    wrapped_by_[id] = wrapper;
    flat_.span[id].start = now();
    const auto& order = schedule_.order[id];
    for (std::size_t k = 0; k < computation.size(); ++k) {
      const InstructionIndex i = order.empty() ? InstructionIndex(k) : order[k];
      visit_called({id, i}, wrapper);
      position[i.index] = now();
      flat_.order.push_back({id, i});
    }
    flat_.span[id].end = now();
  }

  void visit_called(InstructionId id, std::optional<InstructionId> wrapper) {
    const Computation& computation = program_[id.computation];
    const Opcode opcode = computation[id.instruction].opcode;
    const bool flows = opcode == Opcode::kWhile || opcode == Opcode::kCall ||
                       opcode == Opcode::kConditional || opcode == Opcode::kAsyncStart;
    if (!flows) return;
    if (opcode == Opcode::kAsyncStart) wrapper = id;
    for (const ComputationId callee : computation.called(id.instruction)) {
      if (flat_.reaches(callee)) continue;
      flat_.caller[callee] = id;
      visit(callee, wrapper);
    }
  }

  LogicalTime now() const { return flat_.end(); }

  const Program& program_;
  const Schedule& schedule_;
  FlatSchedule flat_;
  IdVector<ComputationId, std::optional<InstructionId>> wrapped_by_;
};

}  // namespace

Result<Schedule> text_schedule(const Program& program) {
  if (!program.is_scheduled)
    return Error{
        ErrorKind::kInput,
        "the module is not scheduled (no is_scheduled=true)",
        {program.path, {}, {}},
        "",
        "memory and time depend on the order XLA chose: give the …after_optimizations.txt of "
        "the dump, not an earlier stage"};
  Schedule schedule;
  schedule.order.resize(program.computations.size());
  return schedule;
}

FlatSchedule flatten(const Program& program, const Schedule& schedule) {
  return Flattener(program, schedule).run();
}

std::optional<InstructionIndex> find_done(const Computation& computation, InstructionIndex start) {
  InstructionIndex at = start;
  for (;;) {
    std::optional<InstructionIndex> update;
    for (const Use& use : computation.uses(at)) {
      const Opcode opcode = computation[use.user].opcode;
      if (is_async_done(opcode)) return use.user;
      if (opcode == Opcode::kAsyncUpdate) update = use.user;
    }
    if (!update) return std::nullopt;
    at = *update;
  }
}

}  // namespace spillway
