#include "model/cost/measured_costs.h"

#include <doctest/doctest.h>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_machine;
using testing::toy_program;

constexpr const char* kProgram = R"(
%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %plus = f32[] add(%x, %y)
}

%fused (a: f32[8]) -> f32[] {
  %a = f32[8]{0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %reduce.1 = f32[] reduce(%a, %zero), dimensions={0}, to_apply=%sum
}

%put (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  ROOT %scatter.1 = f32[8]{0} copy(%b)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %total = f32[] fusion(%p), kind=kInput, calls=%fused
  %start = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(%p), calls=%put
  %done = f32[8]{0} async-done(%start)
  %once = f32[8]{0} negate(%done)
  ROOT %twice = f32[8]{0} negate(%once)
}
)";

TEST_CASE("what was measured overrides the model, by name") {
  const Program program = toy_program(kProgram);
  HardwareProfile machine = toy_machine();
  machine.kernels.gap.value = Seconds(0.5);
  const CostTable modelled = costs(program, machine, make_topology(1, machine));
  const auto time_of = [&](const CostTable& table, const char* name) {
    return table.cost(find_instruction(program, name)).time;
  };
  struct Row {
    const char* name;
    MeasuredTimes times;
    const char* instruction;
    Seconds expected;
  };
  const Seconds total = time_of(modelled, "total");
  const Row rows[] = {
      {"a kernel", {{"once", Seconds(7)}}, "once", Seconds(7)},
      {"another keeps the model's", {{"once", Seconds(7)}}, "twice", time_of(modelled, "twice")},
      {"a fusion", {{"total", Seconds(2)}}, "total", Seconds(2)},
      {"and the kernel it starts with",
       {{"total", Seconds(2)}, {"reduce.1", Seconds(1)}},
       "total",
       Seconds(3.5)},
      {"that kernel alone says nothing of the fusion", {{"reduce.1", Seconds(1)}}, "total", total},
      {"an async start", {{"start", Seconds(5)}}, "start", Seconds(5)},
      {"by the name of what it wraps", {{"scatter.1", Seconds(5)}}, "start", Seconds(5)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const MeasuredCosts measured = with_measured_times(program, modelled, row.times);
    CHECK(time_of(measured.table, row.instruction) == row.expected);
    const Bound bound = measured.table.cost(find_instruction(program, row.instruction)).bound;
    CHECK((bound == Bound::kMeasured) == (row.expected != time_of(modelled, row.instruction)));
  }
}

TEST_CASE("what does not fit together is listed") {
  const Program program = toy_program(kProgram);
  const HardwareProfile machine = toy_machine();
  const CostTable modelled = costs(program, machine, make_topology(1, machine));
  const MeasuredCosts measured = with_measured_times(program, modelled,
                                                     {{"once", Seconds(1)},
                                                      {"total", Seconds(1)},
                                                      {"start", Seconds(1)},
                                                      {"nowhere", Seconds(1)},
                                                      {"p", Seconds(1)}});
  CHECK(measured.unmatched == std::vector<std::string>{"nowhere", "p"});
  std::vector<std::string> unmeasured;
  for (const InstructionId id : measured.unmeasured) unmeasured.emplace_back(program[id].name);
  CHECK(unmeasured == std::vector<std::string>{"twice", "scatter.1"});
}

TEST_CASE("a what-if keeps the measured times of what it did not change") {
  const Program program = toy_program(kProgram);
  const HardwareProfile machine = toy_machine();
  const Topology topology = make_topology(1, machine);
  const MeasuredCosts measured = with_measured_times(program, costs(program, machine, topology),
                                                     {{"once", Seconds(7)}, {"twice", Seconds(7)}});
  Program changed = program;
  ComputationParts parts = program[program.entry].parts();
  const InstructionId twice = find_instruction(program, "twice");
  parts.instructions[twice.instruction.index].opcode = Opcode::kExp;
  changed.computations[program.entry] = make_computation(std::move(parts));
  const CostTable table = costs(changed, machine, topology, measured.table);
  CHECK(table.cost(find_instruction(program, "once")).time == Seconds(7));
  CHECK(table.cost(twice).time == Seconds(2));
  CHECK(table.cost(twice).bound == Bound::kMemory);
}

TEST_CASE("the lesser of both times, and times carried over to another machine") {
  const Program program = toy_program(kProgram);
  const HardwareProfile machine = toy_machine();
  const Topology topology = make_topology(1, machine);
  const CostTable modelled = costs(program, machine, topology);
  const InstructionId once = find_instruction(program, "once");
  const InstructionId twice = find_instruction(program, "twice");
  const Seconds model = modelled.cost(once).time;
  const MeasuredCosts measured =
      with_measured_times(program, modelled, {{"once", model * 3}, {"twice", Seconds(1e-3)}});
  const CostTable lesser = with_lesser_times(program, modelled, measured.table);
  CHECK(lesser.cost(once).time == model);
  CHECK(lesser.cost(twice).time == Seconds(1e-3));
  CHECK(lesser.cost(twice).bound == modelled.cost(twice).bound);

  HardwareProfile faster = machine;
  faster.device.hbm_bandwidth.value = machine.device.hbm_bandwidth.value * 2;
  const CostTable there = costs(program, faster, topology);
  REQUIRE(there.cost(once).time == model * 0.5);
  const CostTable carried = carried_over(program, measured.table, modelled, there);
  CHECK(carried.cost(once).time == model * 1.5);
  CHECK(carried.cost(once).bound == Bound::kMeasured);
  const InstructionId total = find_instruction(program, "total");  // not measured
  CHECK(carried.cost(total) == there.cost(total));
}

}  // namespace
}  // namespace spillway
