#include "sim/step_neighbours.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/model/memory/random_step.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using engine::StepId;
using testing::toy_program;
using testing::toy_schedule;

/// By walking from step to step, as one would explain it.
StepId obvious_reader(const Program& program, const MemoryAssignment& memory,
                      const LoweredProgram& lowered, StepId wait, ComputationId id,
                      ValueId arrived) {
  for (std::uint32_t s = wait.index + 1; s < lowered.origins.size(); ++s) {
    const StepOrigin& step = lowered.origins[StepId(s)];
    if (step.kind == StepOrigin::kLoop || step.instruction.computation != id) return StepId(s);
    if (step.kind == StepOrigin::kWait) continue;
    for (const Operand& operand : program[id].operands(step.instruction.instruction))
      if (memory.values.at(id, operand) == arrived) return StepId(s);
  }
  return StepId(lowered.origins.size());
}

StepId obvious_producer(const Program& program, const MemoryAssignment& memory,
                        const LoweredProgram& lowered, StepId start) {
  const InstructionId id = lowered.origins[start].instruction;
  for (std::uint32_t s = start.index; s-- > 0;) {
    const StepOrigin& step = lowered.origins[StepId(s)];
    if (step.kind == StepOrigin::kLoop || step.instruction.computation != id.computation)
      return StepId(s + 1);
    if (step.kind == StepOrigin::kWait) continue;
    for (const Operand& operand : program[id.computation].operands(id.instruction)) {
      const ValueId value = memory.values.at(id.computation, operand);
      if (memory.values[value].defined_at.instruction == step.instruction) return StepId(s + 1);
    }
  }
  return StepId(0);
}

TEST_CASE("the same as walking from step to step") {
  int within = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    testing::RandomStep step(seed);
    const std::string text = step.text();
    const Program program = toy_program(text, step.header());
    const MemoryAssignment memory = assign_memory(program, toy_schedule(program));
    std::mt19937 random(seed);
    LoweredProgram lowered;
    for (const InstructionId id : memory.schedule.order) {
      StepOrigin origin;
      origin.instruction = id;
      const auto kind = random() % 8;
      origin.kind = kind == 0   ? StepOrigin::kWait
                    : kind == 1 ? StepOrigin::kCopy
                                : StepOrigin::kKernel;
      if (random() % 40 == 0) origin.kind = StepOrigin::kLoop;
      if (random() % 10 > 0) lowered.origins.push(origin);
    }
    const StepNeighbours neighbours(program, memory, lowered);
    for (const StepId at : ids(lowered.origins)) {
      const InstructionId id = lowered.origins[at].instruction;
      const ValueId value = memory.values.at(id, 0);
      const StepId reader = obvious_reader(program, memory, lowered, at, id.computation, value);
      REQUIRE(neighbours.first_reader(at, id.computation, value) == reader);
      const StepId producer = obvious_producer(program, memory, lowered, at);
      REQUIRE(neighbours.behind_producer(at) == producer);
      within += reader.index > at.index + 1 && producer.index + 1 < at.index ? 1 : 0;
    }
  }
  CHECK(within > 100);  // not only neighbours and ends
}

}  // namespace
}  // namespace spillway
