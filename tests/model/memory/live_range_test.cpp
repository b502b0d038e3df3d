#include "model/memory/live_range.h"

#include <doctest/doctest.h>

#include "model/program/call_graph.h"
#include "tests/model/memory/random_step.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::describe_value;
using testing::find_instruction;
using testing::toy_program;
using testing::toy_schedule;

struct Analysed {
  Program program;
  FlatSchedule flat;
  ValueTable values;
  Liveness liveness;
};

Analysed analyse(Program program) {
  FlatSchedule flat = flatten(program, toy_schedule(program));
  ValueTable values = make_values(program, flat);
  Liveness liveness = find_liveness(program, flat, values, InPlacePairs(program));
  return {std::move(program), std::move(flat), std::move(values), std::move(liveness)};
}
Analysed analyse(const std::string& text, const std::string& header = "") {
  return analyse(toy_program(text, header));
}

struct Lives {
  const char* name;  ///< of the instruction that defines the value
  ShapeNodeIndex node;
  int start, end;  ///< both inclusive
};

void check_lives(const Analysed& a, const std::vector<Lives>& expected) {
  for (const Lives& row : expected) {
    CAPTURE(row.name);
    CAPTURE(row.node);
    const InstructionId id = find_instruction(a.program, row.name);
    const ValueId value = a.values.at(id, row.node);
    REQUIRE(a.values[value].defined_at.instruction == id);
    CHECK(a.liveness.ranges[value].start == LogicalTime(row.start));
    CHECK(a.liveness.ranges[value].end == LogicalTime(row.end));
  }
}

/// The values of the buffer that a value belongs to.
std::string buffer_of(const Analysed& a, const char* name, ShapeNodeIndex node = 0) {
  const ValueId value = a.values.at(find_instruction(a.program, name), node);
  std::string text;
  for (const ValueId member : a.liveness.buffers[a.liveness.buffer_of[value]].values)
    text += (text.empty() ? "" : ", ") + describe_value(a.program, a.values, member);
  return text;
}

TEST_CASE("a value lives from its definition to its last use; what the caller holds, always") {
  const Analysed a = analyse(R"(
ENTRY %main (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %x = f32[4]{0} negate(%a)
  %y = f32[4]{0} negate(%x)
  %unused = f32[4]{0} negate(%b)
  %square = f32[2,2]{1,0} bitcast(%x)
  %z = f32[4]{0} add(%y, %y)
  ROOT %out = f32[4]{0} negate(%z)
}
)");
  check_lives(a, {{"a", 0, 0, 8},
                  {"b", 0, 0, 8},
                  {"x", 0, 2, 5},  // behind a bitcast it is the same value
                  {"y", 0, 3, 6},
                  {"unused", 0, 4, 4},
                  {"z", 0, 6, 7},
                  {"out", 0, 7, 8}});  // what is returned lives to the end
}

TEST_CASE("a donated parameter lives to its last use and shares the buffer of the output") {
  const Analysed a = analyse(R"(
ENTRY %main (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %x = f32[4]{0} add(%a, %b)
  %y = f32[4]{0} negate(%b)
  ROOT %out = (f32[4]{0}, f32[4]{0}) tuple(%x, %y)
}
)",
                             ", input_output_alias={ {1}: (0, {}, may-alias) }");
  check_lives(a, {{"a", 0, 0, 2}, {"b", 0, 0, 5}, {"y", 0, 3, 5}, {"x", 0, 2, 5}});
  CHECK(buffer_of(a, "y") == "a, y");
  CHECK(a.liveness.donated.size() == 1);
  CHECK(a.liveness.donated.contains(a.values.at(find_instruction(a.program, "a"), 0)));
  const auto live_out = [&](const char* name) {
    return a.liveness
        .buffers[a.liveness.buffer_of[a.values.at(find_instruction(a.program, name), 0)]]
        .live_out;
  };
  CHECK(live_out("a"));
  CHECK(live_out("x"));
  CHECK(!live_out("b"));
}

TEST_CASE("what a loop carries follows one another in one buffer") {
  const Analysed a = analyse(R"(
%body (p: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  %kept = f32[4]{0} get-tuple-element(%p), index=0
  %old = f32[4]{0} get-tuple-element(%p), index=1
  %half = f32[4]{0} add(%kept, %old)
  %new = f32[4]{0} negate(%half)
  ROOT %next = (f32[4]{0}, f32[4]{0}) tuple(%kept, %new)
}
%condition (q: (f32[4], f32[4])) -> pred[] {
  %q = (f32[4]{0}, f32[4]{0}) parameter(0)
  ROOT %less = pred[] constant(true)
}
ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %from = f32[4]{0} negate(%a)
  %start = (f32[4]{0}, f32[4]{0}) tuple(%a, %from)
  %loop = (f32[4]{0}, f32[4]{0}) while(%start), condition=%condition, body=%body
  %last = f32[4]{0} get-tuple-element(%loop), index=1
  ROOT %out = f32[4]{0} negate(%last)
}
)");
  // a 0, from 1, start 2, q 3, less 4, p 5, half 6, new 7, next 8, loop 9, out 10
  CHECK(buffer_of(a, "loop", 2) == "new, from, q{1} phi, p{1} phi, loop{1} phi");
  check_lives(a, {{"from", 0, 1, 3},  // hands over to the condition's parameter
                  {"q", 2, 3, 5},     // which hands over to the body's
                  {"p", 2, 5, 6},
                  {"half", 0, 6, 7},
                  {"new", 0, 7, 9},  // to the end of the body
                  {"loop", 2, 9, 10},
                  {"a", 0, 0, 11}});
  CHECK(buffer_of(a, "a") == "a");  // handed through, so a value like any other
}

TEST_CASE("an in-place update takes over the buffer at the moment of the update") {
  const Analysed a = analyse(R"(
ENTRY %main (a: f32[4,2], b: f32[1,2], i: s32[]) -> f32[4,2] {
  %a = f32[4,2]{1,0} parameter(0)
  %b = f32[1,2]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %stack = f32[4,2]{1,0} negate(%a)
  %more = f32[4,2]{1,0} dynamic-update-slice(%stack, %b, %i, %i)
  %again = f32[4,2]{1,0} dynamic-update-slice(%more, %b, %i, %i)
  ROOT %out = f32[4,2]{1,0} negate(%again)
}
)");
  CHECK(buffer_of(a, "stack") == "stack, more, again");
  check_lives(a, {{"stack", 0, 3, 4}, {"more", 0, 4, 5}, {"again", 0, 5, 6}});
}

TEST_CASE("what is under way lives until it is done") {
  const std::string text = R"(
%wrapped (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %step = f32[4]{0} negate(%p)
  ROOT %inner = f32[4]{0} negate(%step)
}
ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %x = f32[4]{0} negate(%a)
  %start = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%x), calls=%wrapped
  %copy = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(%x)
  %y = f32[4]{0} negate(%a)
  %done = f32[4]{0} async-done(%start)
  %copied = f32[4]{0:S(5)} copy-done(%copy)
  ROOT %out = f32[4]{0} add(%y, %done)
}
)";
  // a 0, x 1, p 2, step 3, inner 4, start 5, copy 6, y 7, done 8, copied 9, out 10
  const std::vector<Lives> always = {{"x", 0, 1, 9},  // in the tuples of both starts
                                     {"copy", 1, 6, 9},
                                     {"copy", 3, 6, 9},  // the context
                                     {"y", 0, 7, 10}};
  const Analysed now = analyse(text);
  check_lives(now, always);
  check_lives(now, {{"step", 0, 5, 8}, {"inner", 0, 5, 10}});  // runs from the start to the done
  Program older = toy_program(text);
  older.has_explicit_elements = true;  // XLA counted from where it stands then
  const Analysed then = analyse(std::move(older));
  check_lives(then, always);
  check_lives(then, {{"step", 0, 3, 8}, {"inner", 0, 4, 10}});
}

TEST_CASE("the arguments of a call live where the callee uses them") {
  const Analysed a = analyse(R"(
%callee (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %used = f32[4]{0} negate(%p)
  %late = f32[4]{0} negate(%used)
  ROOT %made = f32[4]{0} negate(%late)
}
ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %x = f32[4]{0} negate(%a)
  %run = f32[4]{0} call(%x), to_apply=%callee
  ROOT %out = f32[4]{0} negate(%run)
}
)");
  // a 0, x 1, p 2, used 3, late 4, made 5, run 6, out 7
  check_lives(a, {{"x", 0, 1, 3}, {"used", 0, 3, 4}, {"made", 0, 5, 7}});
}

TEST_CASE("branches of a conditional return in one buffer") {
  const Analysed a = analyse(R"(
%yes (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %one = f32[4]{0} negate(%p)
}
%no (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  ROOT %two = f32[4]{0} negate(%q)
}
ENTRY %main (c: pred[], a: f32[4]) -> f32[4] {
  %c = pred[] parameter(0)
  %a = f32[4]{0} parameter(1)
  %x = f32[4]{0} negate(%a)
  %choose = f32[4]{0} conditional(%c, %x, %x), true_computation=%yes, false_computation=%no
  ROOT %out = f32[4]{0} negate(%choose)
}
)");
  // c 0, a 1, x 2, p 3, one 4, q 5, two 6, choose 7, out 8
  CHECK(buffer_of(a, "choose") == "one, two, choose phi");
  check_lives(a, {{"x", 0, 2, 7}, {"one", 0, 4, 5}, {"two", 0, 6, 7}, {"choose", 0, 7, 8}});
}

TEST_CASE("values of one buffer never share more than the moment they meet") {
  const Analysed a = analyse(R"(
ENTRY %main (a: f32[4,2], b: f32[1,2], i: s32[]) -> (f32[4,2], f32[4,2]) {
  %a = f32[4,2]{1,0} parameter(0)
  %b = f32[1,2]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %stack = f32[4,2]{1,0} negate(%a)
  %more = f32[4,2]{1,0} dynamic-update-slice(%stack, %b, %i, %i)
  %late = f32[4,2]{1,0} negate(%stack)
  ROOT %out = (f32[4,2]{1,0}, f32[4,2]{1,0}) tuple(%late, %more)
}
)");
  // `stack` is read after it was updated: its buffer lives on, as its successor.
  check_lives(a, {{"stack", 0, 3, 4}, {"more", 0, 4, 7}});
}

TEST_CASE("in another order the buffers are the same, and the ranges are found alone") {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    testing::RandomStep step(seed);
    const std::string text = step.text();
    const Program program = testing::toy_program(text, step.header());
    const InPlacePairs in_place(program);
    const FlatSchedule given = flatten(program, testing::toy_schedule(program));
    const ValueTable values = make_values(program, given);
    const Liveness liveness = find_liveness(program, given, values, in_place);
    Schedule other;
    for (const ComputationId id : ids(program.computations))
      other.order.push(instruction_post_order(program[id]));
    const FlatSchedule flat = flatten(program, other);
    const Liveness expected = find_liveness(program, flat, values, in_place);
    const auto ranges = find_live_ranges(program, flat, values, liveness);
    REQUIRE(ranges.size() == expected.ranges.size());
    for (const ValueId value : ids(ranges)) {
      REQUIRE(liveness.buffer_of[value] == expected.buffer_of[value]);
      REQUIRE(ranges[value].start == expected.ranges[value].start);
      REQUIRE(ranges[value].end == expected.ranges[value].end);
    }
  }
}

}  // namespace
}  // namespace spillway
