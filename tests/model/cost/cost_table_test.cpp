#include "model/cost/cost_table.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_machine;
using testing::toy_program;

constexpr const char* kProgram = R"(
%halve (a: f32[8]) -> f32[4] {
  %a = f32[8]{0} parameter(0)
  ROOT %half = f32[4]{0} slice(%a), slice={[0:4]}
}

%put (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  ROOT %out = f32[8]{0:S(5)} copy(%b)
}

%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %m = f32[8]{0} get-tuple-element(%t), index=1
  %small = f32[4]{0} fusion(%m), kind=kLoop, calls=%halve
  ROOT %both = (s32[], f32[8]{0}) tuple(%i, %m)
}

%condition (u: (s32[], f32[8])) -> pred[] {
  %u = (s32[], f32[8]{0}) parameter(0)
  ROOT %no = pred[] constant(false)
}

ENTRY %main (p: f32[8], zero: s32[]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %zero = s32[] parameter(1)
  %both.1 = (s32[], f32[8]{0}) tuple(%zero, %p)
  %loop = (s32[], f32[8]{0}) while(%both.1), condition=%condition, body=%body
  %start = ((f32[8]{0}), f32[8]{0:S(5)}, u32[]) async-start(%p), calls=%put
  %done = f32[8]{0:S(5)} async-done(%start)
  %mine = f32[8]{0} custom-call(%p), custom_call_target="mine"
  ROOT %sum = f32[8]{0} add(%p, %mine)
}
)";

ComputationId find_computation(const Program& program, std::string_view name) {
  for (const ComputationId id : ids(program.computations))
    if (program[id].name() == name) return id;
  FAIL("no computation of that name: " << name);
  return {};
}

/// Whether two tables hold the very same costs for a computation.
bool share(ComputationId id, const CostTable& a, const CostTable& b) {
  return a.costs(id).data() == b.costs(id).data();
}

TEST_CASE("a table holds the work and cost of whatever runs by itself") {
  const Program program = toy_program(kProgram);
  const HardwareProfile machine = toy_machine();
  const CostTable table = costs(program, machine, make_topology(1, machine));
  CHECK(table.contains(program.entry));
  CHECK(table.contains(find_computation(program, "body")));
  CHECK(table.contains(find_computation(program, "put")));
  CHECK_FALSE(table.contains(find_computation(program, "halve")));
  CHECK(table.costs(program.entry).size() == program.entry_computation().size());

  CHECK(table.cost(find_instruction(program, "sum")).time == Seconds(3));  // 96 bytes at 32 B/s
  CHECK(table.cost(find_instruction(program, "loop")) == Cost{});
  CHECK(table.cost(find_instruction(program, "done")) == Cost{});
  CHECK(table.cost(find_instruction(program, "small")).hbm_bytes == Bytes(32));
  // the start and what it wraps cost the same: 32 bytes at 8 B/s
  CHECK(table.cost(find_instruction(program, "start")).time == Seconds(4));
  CHECK(table.cost(find_instruction(program, "start")) ==
        table.cost(find_instruction(program, "out")));
  CHECK(table.work(find_instruction(program, "mine")).unknown == "mine");
  CHECK(table.cost(find_instruction(program, "mine")).bound == Bound::kUnknown);

  const ProgramFlops whole = count_flops(program);
  const ProgramFlops summed = count_flops(program, table);
  CHECK(whole.all_per_step == summed.all_per_step);
  CHECK(whole.xla_cost_analysis == summed.xla_cost_analysis);
  CHECK(summed.xla_cost_analysis == Flops(8));
}

/// A copy of a program with another computation in place of one, as a what-if makes it.
Program replace(const Program& program, ComputationId id, ComputationId by) {
  Program changed = program;
  changed.computations[id] = program.computations[by];
  return changed;
}

/// A copy of a program with a computation rebuilt, after `edit` had its parts.
template <typename Edit>
Program rebuild(const Program& program, ComputationId id, Edit edit) {
  Program changed = program;
  ComputationParts parts = program[id].parts();
  edit(parts);
  changed.computations[id] = make_computation(std::move(parts));
  return changed;
}

TEST_CASE("in a rewritten computation only what was rewritten costs anew") {
  const Program program = toy_program(kProgram);
  const HardwareProfile machine = toy_machine();
  const Topology topology = make_topology(1, machine);
  const CostTable base = costs(program, machine, topology);
  const InstructionId sum = find_instruction(program, "sum");
  const auto same_costs = [&](const CostTable& other, InstructionId except) {
    const auto before = base.costs(program.entry);
    const auto after = other.costs(program.entry);
    for (const InstructionIndex i : program.entry_computation().instructions())
      if (i != except.instruction) CHECK(before[i.index] == after[i.index]);
  };

  SUBCASE("nothing, in another object") {
    const Program copy = rebuild(program, program.entry, [](ComputationParts&) {});
    const CostTable other = costs(copy, machine, topology, base);
    CHECK_FALSE(share(program.entry, other, base));
    same_costs(other, {});
    CHECK(other.cost(sum) == base.cost(sum));
    CHECK(count_flops(copy, other).all_per_step == count_flops(program).all_per_step);
  }
  SUBCASE("an operand that now comes twice is read once") {
    const Program copy = rebuild(program, program.entry, [&](ComputationParts& parts) {
      const Instruction& in = parts.instructions[sum.instruction.index];
      parts.operands[in.first_operand] = parts.operands[in.first_operand + 1];
    });
    const CostTable other = costs(copy, machine, topology, base);
    same_costs(other, sum);
    CHECK(other.cost(sum).hbm_bytes == Bytes(64));
  }
  SUBCASE("a result that moved to the host") {
    const InstructionId put = find_instruction(program, "out");
    const Program copy = rebuild(program, program.entry, [&](ComputationParts& parts) {
      parts.instructions[sum.instruction.index].shape = program[put].shape;
    });
    const CostTable other = costs(copy, machine, topology, base);
    same_costs(other, sum);
    CHECK(other.cost(sum).device_to_host == Bytes(32));
  }
  SUBCASE("an attribute with other text") {
    const InstructionId mine = find_instruction(program, "mine");
    const Program copy = rebuild(program, program.entry, [&](ComputationParts& parts) {
      const Instruction& in = parts.instructions[mine.instruction.index];
      parts.attributes[in.first_attribute].value = "\"AllocateBuffer\"";
    });
    const CostTable other = costs(copy, machine, topology, base);
    same_costs(other, mine);
    CHECK(other.cost(mine) == Cost{});
  }
}

TEST_CASE("a what-if pays for what it changed") {
  const Program program = toy_program(kProgram + std::string(R"(
%keep (c: f32[8]) -> f32[4] {
  %c = f32[8]{0} parameter(0)
  %minus = f32[8]{0} negate(%c)
  %all = f32[8]{0} negate(%minus)
  ROOT %first = f32[4]{0} slice(%all), slice={[0:4]}
}
)"));
  const HardwareProfile machine = toy_machine();
  const Topology topology = make_topology(1, machine);
  const CostTable base = costs(program, machine, topology);
  const ComputationId body = find_computation(program, "body");
  const ComputationId condition = find_computation(program, "condition");

  SUBCASE("nothing changed") {
    const CostTable same = costs(program, machine, topology, base);
    for (const Executed& executed : executed_computations(program))
      CHECK(share(executed.id, same, base));
  }
  SUBCASE("a loop's body changed: its caller keeps its costs") {
    const CostTable other = costs(replace(program, body, condition), machine, topology, base);
    CHECK(share(program.entry, other, base));
    CHECK_FALSE(share(body, other, base));
    CHECK(other.costs(body).size() == program[condition].size());
  }
  SUBCASE("a fusion changed: who calls it is computed anew, though it is the same object") {
    const Program changed =
        replace(program, find_computation(program, "halve"), find_computation(program, "keep"));
    const CostTable other = costs(changed, machine, topology, base);
    CHECK(share(program.entry, other, base));
    CHECK_FALSE(share(body, other, base));
    const InstructionId small = find_instruction(program, "small");
    CHECK(base.work(small).kernel == KernelClass::kSliceCopy);
    CHECK(other.work(small).kernel == KernelClass::kElementwise);
  }
  SUBCASE("a fusion changed, and who calls it was rewritten too") {
    const Program changed = rebuild(
        replace(program, find_computation(program, "halve"), find_computation(program, "keep")),
        body, [](ComputationParts&) {});
    const CostTable other = costs(changed, machine, topology, base);
    CHECK(other.work(find_instruction(program, "small")).kernel == KernelClass::kElementwise);
  }
}

}  // namespace
}  // namespace spillway
