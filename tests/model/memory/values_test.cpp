#include "model/memory/values.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::describe_value;
using testing::find_instruction;
using testing::toy_program;
using testing::toy_schedule;

struct Seen {
  const char* name;  ///< of an instruction
  ShapeNodeIndex node;
  const char* value;  ///< where what stands there is defined
};

void check_values(const std::string& text, const std::vector<Seen>& expected) {
  const Program program = toy_program(text);
  const ValueTable values = make_values(program, flatten(program, toy_schedule(program)));
  for (const Seen& row : expected) {
    CAPTURE(row.name);
    CAPTURE(row.node);
    CHECK(describe_value(program, values,
                         values.at(find_instruction(program, row.name), row.node)) == row.value);
  }
}

TEST_CASE("renaming and grouping make no arrays") {
  check_values(R"(
ENTRY %main (a: f32[4], b: f32[4]) -> ((f32[4], f32[4]), f32[2,2]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %sum = f32[4]{0} add(%a, %b)
  %square = f32[2,2]{1,0} bitcast(%sum)
  %pair = (f32[4]{0}, f32[4]{0}) tuple(%a, %sum)
  %held = (f32[4]{0}, f32[4]{0}) opt-barrier(%pair)
  %copied = (f32[4]{0}, f32[4]{0}) copy(%held)
  %second = f32[4]{0} get-tuple-element(%copied), index=1
  %minus = f32[4]{0} negate(%second)
  %token = token[] after-all()
  %ordered = f32[4]{0} add-dependency(%minus, %token)
  ROOT %all = ((f32[4]{0}, f32[4]{0}), f32[4]{0}) tuple(%held, %ordered)
}
)",
               {{"square", 0, "sum"},
                {"pair", 0, "pair{}"},
                {"pair", 1, "a"},
                {"pair", 2, "sum"},
                {"held", 0, "pair{}"},
                {"held", 2, "sum"},
                {"copied", 0, "copied{}"},  // a copy of a tuple copies the table of pointers alone
                {"copied", 2, "sum"},
                {"minus", 0, "minus"},
                {"ordered", 0, "minus"},
                {"all", 0, "all{}"},
                {"all", 1, "pair{}"},
                {"all", 3, "sum"},
                {"all", 4, "minus"}});
}

/// A loop over (count, kept, changed, other): the body counts, changes one array, and swaps
/// nothing.
constexpr const char* kLoop = R"(
%body (p: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {
  %p = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  %count = s32[] get-tuple-element(%p), index=0
  %kept = f32[4]{0} get-tuple-element(%p), index=1
  %old = f32[4]{0} get-tuple-element(%p), index=2
  %more = s32[] add(%count, %count)
  %new = f32[4]{0} add(%kept, %old)
  ROOT %next = (s32[], f32[4]{0}, f32[4]{0}) tuple(%more, %kept, %new)
}
%condition (q: (s32[], f32[4], f32[4])) -> pred[] {
  %q = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  %seen = s32[] get-tuple-element(%q), index=0
  ROOT %less = pred[] compare(%seen, %seen), direction=LT
}
ENTRY %main (i: s32[], a: f32[4], b: f32[4]) -> f32[4] {
  %i = s32[] parameter(0)
  %a = f32[4]{0} parameter(1)
  %b = f32[4]{0} parameter(2)
  %start = (s32[], f32[4]{0}, f32[4]{0}) tuple(%i, %a, %b)
  %loop = (s32[], f32[4]{0}, f32[4]{0}) while(%start), condition=%condition, body=%body
  %out = f32[4]{0} get-tuple-element(%loop), index=2
  ROOT %minus = f32[4]{0} negate(%out)
}
)";

TEST_CASE("a loop makes values of what its body replaces, none of what it hands through") {
  check_values(kLoop, {{"p", 1, "p{0} phi"},
                       {"q", 1, "q{0} phi"},
                       {"loop", 1, "loop{0} phi"},
                       {"p", 2, "a"},
                       {"q", 2, "a"},
                       {"next", 2, "a"},
                       {"loop", 2, "a"},
                       {"p", 3, "p{2} phi"},
                       {"q", 3, "q{2} phi"},
                       {"next", 3, "new"},
                       {"loop", 3, "loop{2} phi"},
                       {"p", 0, "p{} phi"},  // tables of pointers are replaced like arrays
                       {"loop", 0, "loop{} phi"},
                       {"start", 0, "start{}"},
                       {"start", 2, "a"}});
}

TEST_CASE("carries that swap places are values of their own") {
  check_values(R"(
%body (p: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  %x = f32[4]{0} get-tuple-element(%p), index=0
  %y = f32[4]{0} get-tuple-element(%p), index=1
  ROOT %next = (f32[4]{0}, f32[4]{0}) tuple(%y, %x)
}
%condition (q: (f32[4], f32[4])) -> pred[] {
  %q = (f32[4]{0}, f32[4]{0}) parameter(0)
  ROOT %less = pred[] constant(true)
}
ENTRY %main (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %start = (f32[4]{0}, f32[4]{0}) tuple(%a, %b)
  ROOT %loop = (f32[4]{0}, f32[4]{0}) while(%start), condition=%condition, body=%body
}
)",
               {{"p", 1, "p{0} phi"}, {"p", 2, "p{1} phi"}, {"loop", 1, "loop{0} phi"}});
}

TEST_CASE("what nested loops hand through is what the outer one began with") {
  check_values(R"(
%inner_body (r: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %r = (f32[4]{0}, f32[4]{0}) parameter(0)
  %rk = f32[4]{0} get-tuple-element(%r), index=0
  %rc = f32[4]{0} get-tuple-element(%r), index=1
  %deep = f32[4]{0} add(%rk, %rc)
  ROOT %inner_next = (f32[4]{0}, f32[4]{0}) tuple(%rk, %deep)
}
%inner_condition (s: (f32[4], f32[4])) -> pred[] {
  %s = (f32[4]{0}, f32[4]{0}) parameter(0)
  ROOT %s_less = pred[] constant(true)
}
%body (p: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  ROOT %inner = (f32[4]{0}, f32[4]{0}) while(%p), condition=%inner_condition, body=%inner_body
}
%condition (q: (f32[4], f32[4])) -> pred[] {
  %q = (f32[4]{0}, f32[4]{0}) parameter(0)
  ROOT %q_less = pred[] constant(true)
}
ENTRY %main (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %start = (f32[4]{0}, f32[4]{0}) tuple(%a, %b)
  ROOT %loop = (f32[4]{0}, f32[4]{0}) while(%start), condition=%condition, body=%body
}
)",
               {{"r", 1, "a"},
                {"inner", 1, "a"},
                {"p", 1, "a"},
                {"loop", 1, "a"},
                {"r", 2, "r{1} phi"},
                {"inner", 2, "inner{1} phi"},
                {"p", 2, "p{1} phi"},
                {"loop", 2, "loop{1} phi"}});
}

TEST_CASE("async pairs hand on what they wrap") {
  check_values(R"(
%wrapped (p: f32[4], q: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  ROOT %inner = f32[4]{0} add(%p, %q)
}
ENTRY %main (a: f32[4], b: f32[4]) -> f32[8] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %start = ((f32[4]{0}, f32[4]{0}), f32[4]{0}, u32[]) async-start(%a, %b), calls=%wrapped
  %update = ((f32[4]{0}, f32[4]{0}), f32[4]{0}, u32[]) async-update(%start)
  %done = f32[4]{0} async-done(%update)
  %out = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(%done)
  %moved = f32[4]{0:S(5)} copy-done(%out)
  %gather = (f32[4]{0}, f32[8]{0}) all-gather-start(%a), replica_groups={{0,1}}, dimensions={0}
  %gathered = f32[8]{0} all-gather-done(%gather)
  %reduce = f32[4]{0} all-reduce-start(%b), replica_groups={{0,1}}, to_apply=%wrapped
  %reduced = f32[4]{0} all-reduce-done(%reduce)
  ROOT %end = f32[8]{0} negate(%gathered)
}
)",
               {{"p", 0, "a"},  // parameters of what is wrapped are the operands
                {"start", 0, "start{}"},
                {"start", 1, "start{0}"},
                {"start", 2, "a"},
                {"start", 3, "b"},
                {"start", 4, "inner"},
                {"start", 5, "start{2}"},
                {"update", 0, "update{}"},
                {"update", 1, "update{0}"},
                {"update", 4, "inner"},
                {"update", 5, "update{2}"},
                {"done", 0, "inner"},
                {"out", 1, "out{0}"},
                {"out", 2, "inner"},
                {"moved", 0, "out{0}"},
                {"gather", 1, "a"},
                {"gathered", 0, "gather{1}"},
                {"reduced", 0, "reduce"}});
}

TEST_CASE("conditionals choose between values, calls return them") {
  const std::string branches = R"(
%yes (p: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  %p0 = f32[4]{0} get-tuple-element(%p), index=0
  %made = f32[4]{0} negate(%p0)
  ROOT %yes_out = (f32[4]{0}, f32[4]{0}) tuple(%p0, %made)
}
%no (q: f32[4]) -> (f32[4], f32[4]) {
  %q = f32[4]{0} parameter(0)
  ROOT %no_out = (f32[4]{0}, f32[4]{0}) tuple(%q, %q)
}
)";
  check_values(branches + R"(
ENTRY %main (c: pred[], a: f32[4]) -> (f32[4], f32[4]) {
  %c = pred[] parameter(0)
  %a = f32[4]{0} parameter(1)
  %pair = (f32[4]{0}, f32[4]{0}) tuple(%a, %a)
  ROOT %choose = (f32[4]{0}, f32[4]{0}) conditional(%c, %pair, %a), true_computation=%yes, false_computation=%no
}
)",
               {{"p", 1, "a"},
                {"q", 0, "a"},
                {"choose", 1, "a"},  // both branches return it
                {"choose", 2, "choose{1} phi"},
                {"choose", 0, "choose{} phi"}});
  check_values(branches + R"(
ENTRY %main (a: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %pair = (f32[4]{0}, f32[4]{0}) tuple(%a, %a)
  ROOT %run = (f32[4]{0}, f32[4]{0}) call(%pair), to_apply=%yes
}
)",
               {{"p", 0, "pair{}"}, {"run", 0, "yes_out{}"}, {"run", 1, "a"}, {"run", 2, "made"}});
}

TEST_CASE("values are numbered as XLA numbers them: conditions, callees, callers, then phis") {
  const Program program = toy_program(kLoop);
  const ValueTable values = make_values(program, flatten(program, toy_schedule(program)));
  std::string text;
  for (const ValueId id : ids(values.values()))
    text += (text.empty() ? "" : ", ") + describe_value(program, values, id);
  CHECK(text ==
        "less, more, new, next{}, i, a, b, start{}, minus, "
        "q{} phi, q{0} phi, q{2} phi, p{} phi, p{0} phi, p{2} phi, "
        "loop{} phi, loop{0} phi, loop{2} phi");
}

}  // namespace
}  // namespace spillway
