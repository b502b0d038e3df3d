#include "sim/explain/room.h"

#include "sim/trace/flows.h"

namespace spillway {
namespace {

using engine::StepId;

StepId behind_step(StepId step) { return StepId(step.index + 1); }

}  // namespace

RoomFinder::RoomFinder(const Program& program, const MemoryAssignment& memory,
                       const LoweredProgram& lowered)
    : program_(program),
      memory_(memory),
      lowered_(lowered),
      neighbours_(program, memory, lowered),
      loops_(loops_around(lowered.program)),
      readers_(find_readers(program, memory, lowered)) {}

std::string RoomFinder::name(StepId step) const {
  const StepOrigin& from = lowered_.origins[step];
  return std::string(program_[from.done.value_or(from.instruction)].name);
}

/// What lies at an end of a stretch.
std::string RoomFinder::edge_of(StepId inside, bool begin) const {
  const auto loop = loops_[inside];
  const StepId next = begin ? inside : behind_step(inside);
  const StepId end = loop ? std::get<engine::LoopStep>(lowered_.program.steps[*loop]).end
                          : StepId(lowered_.program.steps.size());
  if (begin ? loop && inside == behind_step(*loop) : loop && next == end)
    return "the iteration " + std::string(begin ? "begins" : "ends") + " there";
  if (begin ? inside.index == 0 : next == end)
    return "the step " + std::string(begin ? "begins" : "ends") + " there";
  return "another loop or function " + std::string(begin ? "ends" : "begins") + " there";
}

Room RoomFinder::before(const Target& target) const {
  const StepId at = neighbours_.behind_producer(target.start);
  const InstructionId id = lowered_.origins[target.start].instruction;
  bool made = false;
  if (at.index > 0) {
    const StepId maker(at.index - 1);
    for (const Operand& operand : program_[id.computation].operands(id.instruction))
      made |= memory_.values[memory_.values.at(id.computation, operand)].defined_at.instruction ==
              lowered_.origins[maker].instruction;
  }
  Room room{
      at, made ? name(StepId(at.index - 1)) + " makes what it reads" : edge_of(at, /*begin=*/true)};
  for (const StepId wait : target.waits)
    if (room.end <= wait && wait < target.start)
      room = {behind_step(wait), "the wait for the one before it stands there"};
  return room;
}

Room RoomFinder::behind(const Target& target) const {
  const StepId wait = target.wait;
  const InstructionId done = *lowered_.origins[wait].done;
  const StepId at = neighbours_.first_reader(wait, done.computation, memory_.values.at(done, 0));
  Room room{at, readers_[wait] == at ? name(at) + " reads it"
                                     : edge_of(StepId(at.index - 1), /*begin=*/false)};
  for (const StepId start : target.starts)
    if (wait < start && start < room.end) room = {start, "the next one starts there"};
  return room;
}

}  // namespace spillway
