#include "model/program/call_graph.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::read_entry;
using testing::read_module;

/// A loop around `inner`, which works on s32[]; `trips` as XLA knows them, or empty.
std::string loop(const std::string& name, const std::string& calls, const std::string& trips) {
  const std::string config =
      trips.empty() ? "" : ", backend_config={\"known_trip_count\":{\"n\":\"" + trips + "\"}}";
  return "%" + name +
         "_condition {\n  %p = s32[] parameter(0)\n  ROOT %lt = pred[] custom-call(%p), "
         "custom_call_target=\"lt\"\n}\n"
         "%" +
         name + " {\n  %p = s32[] parameter(0)\n  ROOT %w = s32[] while(%p), condition=%" + name +
         "_condition, body=%" + calls + config + "\n}\n";
}

const char* const kWork =
    "HloModule toy, is_scheduled=true\n"
    "%work {\n  %p = s32[] parameter(0)\n  ROOT %n = s32[] negate(%p)\n}\n";

std::int64_t runs_of(const Program& program, std::string_view name) {
  const Multiplicity times = multiplicity(program);
  for (const ComputationId id : ids(program.computations))
    if (program[id].name() == name) return times.runs[id];
  return -1;
}

std::string names(const Program& program, const std::vector<ComputationId>& order) {
  std::string text;
  for (const ComputationId id : order) text += std::string(program[id].name()) + " ";
  return text;
}

TEST_CASE("how often a computation runs") {
  const std::string entry =
      "ENTRY %main {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), to_apply=%outer\n}\n";
  SUBCASE("nested loops multiply") {
    const Program program =
        read_module(kWork + loop("inner", "work", "3") + loop("outer", "inner", "5") + entry);
    CHECK(runs_of(program, "main") == 1);
    CHECK(runs_of(program, "outer") == 1);
    CHECK(runs_of(program, "inner") == 5);
    CHECK(runs_of(program, "inner_condition") == 15);
    CHECK(runs_of(program, "work") == 15);
    CHECK(multiplicity(program).unknown_trip_counts.empty());
  }
  SUBCASE("a loop that XLA does not know counts once, and is listed") {
    const Program program =
        read_module(kWork + loop("inner", "work", "") + loop("outer", "inner", "5") + entry);
    CHECK(runs_of(program, "work") == 5);
    const auto unknown = multiplicity(program).unknown_trip_counts;
    REQUIRE(unknown.size() == 1);
    CHECK(program[unknown[0].computation].name() == "inner");
  }
  SUBCASE("what does not fit is the largest number") {
    const Program program = read_module(kWork + loop("inner", "work", "99999999999999999999") +
                                        loop("outer", "inner", "5000000000") + entry);
    CHECK(runs_of(program, "inner") == 5000000000);
    CHECK(runs_of(program, "work") == std::numeric_limits<std::int64_t>::max());
  }
}

TEST_CASE("what is not reached from the entry does not run") {
  const Program program =
      read_module(std::string(kWork) + "ENTRY %main {\n  ROOT %p = s32[] parameter(0)\n}\n");
  CHECK(runs_of(program, "work") == 0);
}

TEST_CASE("callees come before callers, call sites in text order") {
  const Program program = read_module(
      "HloModule toy\n"
      "%a {\n  ROOT %p = s32[] parameter(0)\n}\n"
      "%b {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), to_apply=%a\n}\n"
      "ENTRY %main {\n  %p = s32[] parameter(0)\n  %x = s32[] call(%p), to_apply=%a\n"
      "  ROOT %y = s32[] call(%x), to_apply=%b\n}\n");
  CHECK(names(program, computation_post_order(program)) == "a b main ");
  const auto sites = callers(program);
  REQUIRE(sites[ComputationId(0)].size() == 2);
  CHECK(program[sites[ComputationId(0)][0]].name == "c");
  CHECK(program[sites[ComputationId(0)][1]].name == "x");
  CHECK(find_call_cycle(program) == std::nullopt);
}

TEST_CASE("instructions after their operands and control predecessors") {
  struct Row {
    std::string name;
    std::string instructions;
    std::string expected;
  };
  const Row rows[] = {
      {"first operand first, from what nobody uses",
       "  p = f32[] parameter(0)\n  a = f32[] negate(p)\n  b = f32[] negate(p)\n"
       "  c = f32[] add(b, a)\n  d = f32[] negate(a)\n",
       "p b a c d "},
      {"control predecessors come first of all",
       "  p = f32[] parameter(0)\n  a = f32[] negate(p)\n"
       "  b = f32[] negate(p), control-predecessors={a}\n  c = f32[] add(b, a)\n",
       "p a b c "},
      {"several, with and without %",
       "  %p = f32[] parameter(0)\n  %a = f32[] negate(%p)\n  %a2 = f32[] negate(%p)\n"
       "  %b = f32[] negate(%p), control-predecessors={%a2, a}\n",
       "p a a2 b "},
      {"a name that is not there is ignored",
       "  p = f32[] parameter(0)\n  b = f32[] negate(p), control-predecessors={%gone}\n", "p b "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_entry(row.instructions);
    std::string order;
    for (const InstructionIndex i : instruction_post_order(program.entry_computation()))
      order += std::string(program.entry_computation()[i].name) + " ";
    CHECK(order == row.expected);
  }
}

TEST_CASE("long chains need no deep stack") {
  constexpr int kLength = 300000;
  std::string text = "  x0 = f32[] parameter(0)\n";
  for (int i = 1; i < kLength; ++i)
    text += "  x" + std::to_string(i) + " = f32[] negate(x" + std::to_string(i - 1) + ")\n";
  const Program program = read_entry(text);
  CHECK(instruction_post_order(program.entry_computation()).size() == kLength);
}

TEST_CASE("deep chains of calls need no deep stack") {
  constexpr int kDepth = 100000;
  std::string text = "HloModule toy\n%c0 {\n  ROOT %p = s32[] parameter(0)\n}\n";
  for (int i = 1; i < kDepth; ++i)
    text += "%c" + std::to_string(i) +
            " {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), to_apply=%c" +
            std::to_string(i - 1) + "\n}\n";
  text += "ENTRY %main {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), to_apply=%c" +
          std::to_string(kDepth - 1) + "\n}\n";
  const Program program = read_module(text);
  CHECK(find_call_cycle(program) == std::nullopt);
  CHECK(computation_post_order(program).size() == kDepth + 1);
  CHECK(runs_of(program, "c0") == 1);
}

}  // namespace
}  // namespace spillway
