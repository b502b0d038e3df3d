#include "model/memory/heap_replay.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;
using testing::toy_schedule;

/// The uses of the item in which an instruction's result lies, as "0-1 2-3", and who else lies
/// there.
struct Replayed {
  explicit Replayed(const std::string& text)
      : program(toy_program(text)),
        flat(flatten(program, toy_schedule(program))),
        values(make_values(program, flat)),
        in_place(program),
        liveness(find_liveness(program, flat, values, in_place)) {
    OperandSharing sharing(program, in_place);
    std::vector<BufferId> buffers;
    for (const BufferId id : ids(liveness.buffers)) buffers.push_back(id);
    plan = replay_heap(program, values, liveness, buffers, sharing);
  }

  std::uint32_t item(const char* name) const {
    const auto found = plan.item_of[values.at(find_instruction(program, name), 0)];
    REQUIRE(found);
    return *found;
  }
  std::string uses(const char* name) const {
    std::string text;
    for (const HeapItem::Use& use : plan.items[item(name)].uses)
      text += (text.empty() ? "" : " ") + std::to_string(use.start) + "-" + std::to_string(use.end);
    return text;
  }

  Program program;
  FlatSchedule flat;
  ValueTable values;
  InPlacePairs in_place;
  Liveness liveness;
  HeapPlan plan;
};

TEST_CASE("definitions and deaths are counted, definitions first") {
  const Replayed replayed(R"(
ENTRY %main (a: f32[4]) -> f32[2,2] {
  %a = f32[4]{0} parameter(0)
  %x = f32[4]{0} negate(%a)
  %y = f32[2,2]{1,0} dot(%x, %x), lhs_contracting_dims={}, rhs_contracting_dims={}
  ROOT %z = f32[2,2]{1,0} dot(%y, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
)");
  // a 0 | x 1 | y 2, then x dies 3 | z 4, then y dies 5 | at the end a 6 and z 7
  CHECK(replayed.uses("a") == "0-6");
  CHECK(replayed.uses("x") == "1-3");
  CHECK(replayed.uses("y") == "2-5");
  CHECK(replayed.uses("z") == "4-7");
  CHECK(replayed.plan.items.size() == 4);
}

TEST_CASE("a result joins the item of an operand that dies under it") {
  const Replayed replayed(R"(
ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %x = f32[4]{0} negate(%a)
  %w = f32[4]{0} negate(%a)
  %y = f32[4]{0} add(%x, %w)
  %z = f32[4]{0} add(%w, %y)
  %c = f32[4]{0} copy(%z)
  ROOT %out = f32[4]{0} negate(%c)
}
)");
  // y takes the place of x, its first operand that dies; z that of w; a copy takes no one's.
  CHECK(replayed.item("y") == replayed.item("x"));
  CHECK(replayed.item("z") == replayed.item("w"));
  CHECK(replayed.item("c") != replayed.item("z"));
  CHECK(replayed.item("out") == replayed.item("c"));
  CHECK(replayed.item("x") != replayed.item("a"));  // the caller's
  CHECK(replayed.uses("x") == "1-3 4-7");           // x is freed at the moment y is made
}

TEST_CASE(
    "an operand behind a bitcast, in a tuple or in a shared buffer lends its place to nobody") {
  const Replayed replayed(R"(
ENTRY %main (a: f32[4], b: f32[1], i: s32[]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[1]{0} parameter(1)
  %i = s32[] parameter(2)
  %x = f32[4]{0} negate(%a)
  %renamed = f32[4]{0} bitcast(%x)
  %y = f32[4]{0} negate(%renamed)
  %pair = (f32[4]{0}) tuple(%y)
  %first = f32[4]{0} get-tuple-element(%pair), index=0
  %z = f32[4]{0} negate(%first)
  %stack = f32[4]{0} negate(%a)
  %more = f32[4]{0} dynamic-update-slice(%stack, %b, %i)
  ROOT %out = f32[4]{0} add(%more, %z)
}
)");
  CHECK(replayed.item("y") != replayed.item("x"));
  CHECK(replayed.item("z") != replayed.item("y"));
  CHECK(replayed.item("more") == replayed.item("stack"));  // one buffer
  CHECK(replayed.item("out") == replayed.item("z"));  // not that of `more`, which has two values
}

TEST_CASE("values of no size have no item") {
  const Replayed replayed(R"(
ENTRY %main (a: f32[0]) -> f32[0] {
  %a = f32[0]{0} parameter(0)
  ROOT %x = f32[0]{0} negate(%a)
}
)");
  CHECK(replayed.plan.items.empty());
  CHECK(!replayed.plan.item_of[ValueId(0)]);
}

}  // namespace
}  // namespace spillway
