#include "sim/rewrite/drop_dead.h"

#include <doctest/doctest.h>

#include "model/program/validate.h"
#include "tests/sim/rewrite/describe.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// A loop that carries a counter, a sum that is read, a value that is only handed on, and one that
/// only itself is made from; its condition reads the counter.
constexpr const char* kLoop = R"(
%less {
  %lp = (s32[], f32[8]{0}, f32[16]{0}, f32[32]{0}) parameter(0)
  %n = s32[] constant(4)
  ROOT %l = pred[] compare(%lp#0, %n), direction=LT
}

%body {
  %p = (s32[], f32[8]{0}, f32[16]{0}, f32[32]{0}) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%p#0, %one)
  %sum = f32[8]{0} add(%p#1, %p#1)
  %idle = f32[32]{0} negate(%p#3)
  ROOT %r = (s32[], f32[8]{0}, f32[16]{0}, f32[32]{0}) tuple(%next, %sum, %p#2, %idle)
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %b = f32[16]{0} parameter(1)
  %c = f32[32]{0} parameter(2)
  %zero = s32[] constant(0)
  %unread = f32[16]{0} negate(%b)
  %begin = (s32[], f32[8]{0}, f32[16]{0}, f32[32]{0}) tuple(%zero, %a, %unread, %c)
  %loop = (s32[], f32[8]{0}, f32[16]{0}, f32[32]{0}) while(%begin), condition=%less, body=%body, backend_config={"known_induction_variable":{"tuple_index":"0"}}
  %out = f32[8]{0} negate(%loop#1)
  ROOT %result = (f32[8]{0}) tuple(%out)
}
)";

std::string body_text(const Program& program) {
  const InstructionId loop = testing::find_instruction(program, "loop");
  return testing::describe(program[program[loop.computation].called(loop.instruction)[1]]);
}

TEST_CASE("a loop carries nothing for nobody") {
  const Program dropped = drop_dead(testing::toy_program(kLoop));
  const auto unsound = validate(dropped);
  CHECK_MESSAGE(!unsound, (unsound ? to_text(*unsound) : ""));
  CHECK(body_text(dropped) == "p one next(p#1,one) sum(p#2,p#2) r(next,sum) -> r");
  CHECK(testing::describe(dropped.entry_computation()) ==
        "a b c zero begin(zero,a) loop(begin) out(loop#2) result(out) -> result");
}

TEST_CASE("the counter is found where it has moved to") {
  std::string text = kLoop;
  // What is read comes last, the counter in front of it.
  const auto swap = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text.replace(at, from.size(), to);
  };
  swap("(s32[], f32[8]{0}, f32[16]{0}, f32[32]{0})", "(f32[16]{0}, s32[], f32[8]{0}, f32[32]{0})");
  swap("#0", "#9");
  swap("#2", "#0");
  swap("#1", "#2");
  swap("#9", "#1");
  swap("tuple(%next, %sum, %p#0, %idle)", "tuple(%p#0, %next, %sum, %idle)");
  swap("tuple(%zero, %a, %unread, %c)", "tuple(%unread, %zero, %a, %c)");
  swap("\"tuple_index\":\"0\"", "\"tuple_index\":\"1\"");
  const Program dropped = drop_dead(testing::toy_program(text));
  CHECK(body_text(dropped) == "p one next(p#1,one) sum(p#2,p#2) r(next,sum) -> r");
  const InstructionId loop = testing::find_instruction(dropped, "loop");
  CHECK(dropped[loop.computation].attribute(loop.instruction, "backend_config") ==
        "{\"known_induction_variable\":{\"tuple_index\":\"0\"}}");
}

TEST_CASE("results that nobody reads leave a fusion, with what only they need") {
  const Program dropped = drop_dead(testing::toy_program(R"(
%fused {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %minus = f32[8]{0} negate(%x)
  %more = f32[8]{0} add(%x, %y)
  ROOT %both = (f32[8]{0}, f32[8]{0}) tuple(%minus, %more)
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %costly = f32[8]{0} tanh(%b)
  %f = (f32[8]{0}, f32[8]{0}) fusion(%a, %costly), kind=kLoop, calls=%fused
  ROOT %out = f32[8]{0} negate(%f#0)
}
)"));
  CHECK(testing::describe(dropped.entry_computation()) == "a b f(a) out(f) -> out");
}

TEST_CASE("what has an effect stays, and so does what is all alive") {
  const char* const text = R"(
ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %t = token[] after-all()
  %sent = token[] outfeed(%a, %t)
  %call = f32[8]{0} custom-call(%a), custom_call_target="f", custom_call_has_side_effect=true
  ROOT %out = f32[8]{0} negate(%a)
}
)";
  const Program program = testing::toy_program(text);
  const Program dropped = drop_dead(program);
  CHECK(dropped.computations[dropped.entry] == program.computations[program.entry]);
}

}  // namespace
}  // namespace spillway
