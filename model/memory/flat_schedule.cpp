#include "model/memory/flat_schedule.h"

#include <span>

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
    flat_.async_start.resize(n);
    flat_.async_done.resize(n);
    wrapped_by_.resize(n);
    flat_.order.reserve(program.instruction_count());
  }

  FlatSchedule run() {
    enter(program_.entry, std::nullopt);
    while (!frames_.empty()) advance();
    for (const ComputationId id : ids(program_.computations)) {
      if (!wrapped_by_[id]) continue;
      const InstructionId start = *wrapped_by_[id];
      flat_.async_start[id] = flat_.position[start.computation][start.instruction.index];
      if (const auto done = find_done(program_[start.computation], start.instruction))
        flat_.async_done[id] = flat_.position[start.computation][done->index];
    }
    return std::move(flat_);
  }

 private:
  /// A computation under way. Programs may nest deeper than the machine's stack, so these stand on
  /// one of our own.
  struct Frame {
    ComputationId computation;
    std::size_t next = 0;         ///< instruction, in order
    std::size_t next_callee = 0;  ///< of that instruction
  };

  /// `wrapper` is the async start around the computation, if any.
  void enter(ComputationId id, std::optional<InstructionId> wrapper) {
    check(schedule_.order[id].empty() || schedule_.order[id].size() == program_[id].size(),
          "a schedule must order every instruction of its computation");
    flat_.position[id].resize(program_[id].size());
    wrapped_by_[id] = wrapper;
    flat_.span[id].start = now();
    frames_.push_back({id});
  }

  /// Enters what the next instruction of the innermost computation calls, or passes it.
  void advance() {
    Frame& frame = frames_.back();
    const ComputationId id = frame.computation;
    const Computation& computation = program_[id];
    if (frame.next == computation.size()) {
      flat_.span[id].end = now();
      frames_.pop_back();
      return;
    }
    const auto& order = schedule_.order[id];
    const InstructionIndex i = order.empty() ? InstructionIndex(frame.next) : order[frame.next];
    const auto callees = runs_what_it_calls(computation[i].opcode)
                             ? computation.called(i)
                             : std::span<const ComputationId>();
    while (frame.next_callee < callees.size()) {
      const ComputationId callee = callees[frame.next_callee++];
      if (flat_.reaches(callee)) continue;
      flat_.caller[callee] = InstructionId{id, i};
      const bool wraps = computation[i].opcode == Opcode::kAsyncStart;
      return enter(callee, wraps ? flat_.caller[callee] : wrapped_by_[id]);
    }
    flat_.position[id][i.index] = now();
    flat_.order.push_back({id, i});
    ++frame.next;
    frame.next_callee = 0;
  }

  LogicalTime now() const { return flat_.end(); }

  const Program& program_;
  const Schedule& schedule_;
  FlatSchedule flat_;
  std::vector<Frame> frames_;
  IdVector<ComputationId, std::optional<InstructionId>> wrapped_by_;
};

}  // namespace

Result<Schedule> text_schedule(const Program& program) {
  if (!program.is_scheduled)
    return error_in_file(
        program.path, "the module is not scheduled (no is_scheduled=true)",
        "memory and time depend on the order XLA chose: give the …after_optimizations.txt of "
        "the dump, not an earlier stage");
  Schedule schedule;
  schedule.order.resize(program.computations.size());
  return schedule;
}

FlatSchedule flatten(const Program& program, const Schedule& schedule) {
  return Flattener(program, schedule).run();
}

std::optional<InstructionId> loop_around(const Program& program, const FlatSchedule& schedule,
                                         ComputationId id) {
  for (auto caller = schedule.caller[id]; caller; caller = schedule.caller[caller->computation])
    if (program[*caller].opcode == Opcode::kWhile) return caller;
  return std::nullopt;
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
