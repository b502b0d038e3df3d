#include "model/plan/check_plan.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/model/residuals/toy_scan.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::find_instruction;
using testing::read_entry;
using testing::read_module;
using testing::Save;
using testing::toy_program;
using testing::ToyScan;

using Complaints = std::vector<std::string>;

Budget limits(std::int64_t pool, std::int64_t host) {
  Budget budget;
  budget.hbm = Bytes(1 << 20);
  budget.pool = Bytes(pool);
  budget.host = Bytes(host);
  return budget;
}

const Budget kPlenty = limits(1 << 20, 1 << 20);

constexpr const char* kOut = "  %out = (f32[8]{0:S(5)}, f32[8]{0}, u32[]) copy-start(%x)\n";
constexpr const char* kOutDone = "  %out.done = f32[8]{0:S(5)} copy-done(%out)\n";
constexpr const char* kBack = "  %in = (f32[8]{0}, f32[8]{0:S(5)}, u32[]) copy-start(%out.done)\n";
constexpr const char* kBackDone = "  %in.done = f32[8]{0} copy-done(%in)\n";

/// An entry that reads %x, f32[8].
Program entry(const std::string& lines) {
  return read_entry("  %x = f32[8]{0} parameter(0)\n" + lines);
}

TEST_CASE("a right plan is not complained about") {
  CHECK(check_plan(entry(std::string(kOut) + kOutDone + kBack + kBackDone +
                         "  ROOT %r = f32[8]{0} negate(%in.done)\n"),
                   kPlenty) == Complaints{});
  for (const bool a_on_host : {false, true})
    for (const bool b_on_host : {false, true}) {
      CAPTURE(a_on_host);
      CAPTURE(b_on_host);
      const auto stack = [](bool on_host) {
        return on_host ? testing::ToyStack{Save::kAsync, Fetch::kAsync, true} : testing::ToyStack{};
      };
      const ToyScan scan{.a = stack(a_on_host), .b = stack(b_on_host)};
      CHECK(check_plan(toy_program(scan.text()), kPlenty) == Complaints{});
    }
}

TEST_CASE("what clashes is named") {
  struct Row {
    const char* name;
    std::string lines;
    Complaints expected;
  };
  const Row rows[] = {
      {"an offload that nobody waits for",
       std::string(kOut) + "  ROOT %r = f32[8]{0} negate(%x)\n",
       {"main: copy 'out' has 0 dones"}},
      {"a reload that nobody waits for",
       std::string(kOut) + kOutDone + kBack + "  ROOT %r = f32[8]{0} negate(%x)\n",
       {"main: copy 'in' has 0 dones"}},
      {"two dones",
       std::string(kOut) + kOutDone + "  ROOT %again = f32[8]{0:S(5)} copy-done(%out)\n",
       {"main: copy 'out' has 2 dones"}},
      {"a reload read before it is done",
       std::string(kOut) + kOutDone + kBack + "  %r = f32[8]{0} negate(%in#0)\n" + kBackDone +
           "  ROOT %s = f32[8]{0} add(%r, %in.done)\n",
       {"main: 'r' reads the copy 'in' before it is done at 'in.done'"}},
      {"a reload read past its done",
       std::string(kOut) + kOutDone + kBack + kBackDone +
           "  ROOT %r = f32[8]{0} add(%in#0, %in.done)\n",
       {"main: 'r' reads the copy 'in' before it is done at 'in.done'"}},
      {"an offload handed on before it is done",
       std::string(kOut) + "  %t = (f32[8]{0:S(5)}) tuple(%out#0)\n" + kOutDone +
           "  ROOT %r = f32[8]{0} negate(%x)\n",
       {"main: 't' reads the copy 'out' before it is done at 'out.done'"}},
      {"computing on the host",
       std::string(kOut) + kOutDone + "  ROOT %r = f32[8]{0} negate(%out.done)\n",
       {"main: 'r' computes on an array in host memory"}},
      {"several at once, in the order of the program",
       std::string(kOut) + kOutDone + "  %n = f32[8]{0} negate(%out.done)\n" + kBack +
           "  ROOT %r = f32[8]{0} add(%n, %n)\n",
       {"main: 'n' computes on an array in host memory", "main: copy 'in' has 0 dones"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(check_plan(entry(row.lines), kPlenty) == row.expected);
  }
}

TEST_CASE("loops, calls and branches are looked into") {
  const std::string wrong = " {\n  %x = f32[8]{0} parameter(0)\n" + std::string(kOut) +
                            "  ROOT %r = f32[8]{0} negate(%x)\n}\n";
  const std::string always =
      "%always {\n  %a = f32[8]{0} parameter(0)\n  ROOT %yes = pred[] constant(true)\n}\n";
  const std::string main = "ENTRY %main {\n  %p = f32[8]{0} parameter(0)\n";
  struct Row {
    const char* name;
    std::string text;
  };
  const Row rows[] = {
      {"a loop", "%inner" + wrong + always + main +
                     "  ROOT %w = f32[8]{0} while(%p), condition=%always, body=%inner\n}\n"},
      {"a call", "%inner" + wrong + main + "  ROOT %c = f32[8]{0} call(%p), to_apply=%inner\n}\n"},
      {"a branch", "%inner" + wrong + "%other {\n  ROOT %o = f32[8]{0} parameter(0)\n}\n" + main +
                       "  %which = pred[] constant(true)\n  ROOT %c = f32[8]{0} "
                       "conditional(%which, %p, %p), true_computation=%inner, "
                       "false_computation=%other\n}\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(check_plan(toy_program(row.text), kPlenty) ==
          Complaints{"inner: copy 'out' has 0 dones"});
  }
}

/// The program with the operands of an instruction's computation changed.
Program with_operands(Program program, std::string_view instruction,
                      const std::function<void(std::span<Operand>)>& change) {
  const InstructionId id = find_instruction(program, instruction);
  ComputationParts parts = program[id.computation].parts();
  const Instruction& in = parts.instructions[id.instruction.index];
  change(std::span(parts.operands).subspan(in.first_operand, in.operand_count));
  program.computations[id.computation] = make_computation(std::move(parts));
  return program;
}

TEST_CASE("reading what comes later is named, though no reader would let it in") {
  const Program program = entry(
      "  %a = f32[8]{0} negate(%x)\n  %b = f32[8]{0} tanh(%a)\n  ROOT %c = f32[8]{0} "
      "add(%a, %b)\n");
  const auto reads = [&](std::string_view what) {
    const InstructionIndex i = find_instruction(program, what).instruction;
    return with_operands(program, "b",
                         [i](std::span<Operand> operands) { operands[0].instruction = i; });
  };
  CHECK(check_plan(reads("a"), kPlenty) == Complaints{});
  CHECK(check_plan(reads("c"), kPlenty) == Complaints{"main: 'b' reads 'c' before it is defined"});
  CHECK(check_plan(reads("b"), kPlenty) == Complaints{"main: 'b' reads 'b' before it is defined"});
}

TEST_CASE("a program without an order is no plan") {
  const Program program =
      read_module("HloModule toy\n\nENTRY %main {\n  %x = f32[8]{0} parameter(0)\n}\n");
  CHECK(check_plan(program, kPlenty) ==
        Complaints{"the module is not scheduled (no is_scheduled=true)"});
}

TEST_CASE("memory must stay within the budget, to the byte") {
  // 1024 B of HBM as parameter and 1024 B of host memory as result.
  const Program program =
      read_entry("  %x = f32[256]{0} parameter(0)\n  ROOT %r = f32[256]{0:S(5)} copy(%x)\n");
  struct Row {
    std::int64_t pool, host;
    Complaints expected;
  };
  const Row rows[] = {
      {1024, 1024, {}},
      {1023, 1024, {"misses the budget, HBM by 1 B"}},
      {1024, 1023, {"misses the budget, host by 1 B"}},
      {0, 0, {"misses the budget, HBM by 1.00 KiB", "misses the budget, host by 1.00 KiB"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pool);
    CAPTURE(row.host);
    CHECK(check_plan(program, limits(row.pool, row.host)) == row.expected);
  }
}

}  // namespace
}  // namespace spillway
