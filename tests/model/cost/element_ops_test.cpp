#include "model/cost/element_ops.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

/// A fusion of a row a: f32[4] and a table t: f32[2,4], whose lines of text are `body`.
double operations(const std::string& body, const std::string& result = "f32[2,4]{1,0}") {
  const Program program = toy_program(
      "%plus (x: f32[], y: f32[]) -> f32[] {\n"
      "  %x = f32[] parameter(0)\n"
      "  %y = f32[] parameter(1)\n"
      "  ROOT %sum = f32[] add(%x, %y)\n"
      "}\n\n"
      "%fused (a: f32[4], t: f32[2,4], c: f32[2]) -> " +
      result +
      " {\n"
      "  %a = f32[4]{0} parameter(0)\n"
      "  %t = f32[2,4]{1,0} parameter(1)\n"
      "  %c = f32[2]{0} parameter(2)\n"
      "  %zero = f32[] constant(0)\n" +
      body +
      "}\n\n"
      "ENTRY %main (p: f32[4], q: f32[2,4], r: f32[2]) -> " +
      result +
      " {\n"
      "  %p = f32[4]{0} parameter(0)\n"
      "  %q = f32[2,4]{1,0} parameter(1)\n"
      "  %r = f32[2]{0} parameter(2)\n"
      "  ROOT %f = " +
      result + " fusion(%p, %q, %r), kind=kLoop, calls=%fused\n}\n");
  return count_element_ops(program, find_instruction(program, "f")).value();
}

TEST_CASE("what threads compute, over and over where it is broadcast") {
  struct Row {
    const char* name;
    std::string body;
    double expected;
    std::string result = "f32[2,4]{1,0}";
  };
  const Row rows[] = {
      {"an operation an element", "  ROOT %n = f32[2,4]{1,0} negate(%t)\n", 8},
      {"moving is none",
       "  %copied = f32[2,4]{1,0} copy(%t)\n"
       "  ROOT %b = f32[2,4]{1,0} bitcast(%copied)\n",
       0},
      {"exponentials count like others",
       "  %e = f32[2,4]{1,0} exponential(%t)\n"
       "  ROOT %n = f32[2,4]{1,0} negate(%e)\n",
       16},
      {"two readers of one element",
       "  %e = f32[2,4]{1,0} exponential(%t)\n"
       "  ROOT %s = f32[2,4]{1,0} add(%e, %e)\n",
       16},
      {"a row for each line anew: 8 and 8",
       "  %n = f32[4]{0} negate(%a)\n"
       "  %wide = f32[2,4]{1,0} broadcast(%n), dimensions={1}\n"
       "  ROOT %s = f32[2,4]{1,0} add(%wide, %t)\n",
       16},
      {"a value of a line once a line: 8 and 2",
       "  %n = f32[2]{0} negate(%c)\n"
       "  %wide = f32[2,4]{1,0} broadcast(%n), dimensions={0}\n"
       "  ROOT %s = f32[2,4]{1,0} add(%wide, %t)\n",
       10},
      {"a reduction adds each element: 8 and 8",
       "  %n = f32[2,4]{1,0} negate(%t)\n"
       "  ROOT %r = f32[2]{0} reduce(%n, %zero), dimensions={1}, to_apply=%plus\n",
       16, "f32[2]{0}"},
      {"a reduction read by all of its line is done again for none of it: 8, 8, 8",
       "  %n = f32[2,4]{1,0} negate(%t)\n"
       "  %r = f32[2]{0} reduce(%n, %zero), dimensions={1}, to_apply=%plus\n"
       "  %wide = f32[2,4]{1,0} broadcast(%r), dimensions={0}\n"
       "  ROOT %s = f32[2,4]{1,0} add(%wide, %t)\n",
       24},
      {"several results: 8 and 4",
       "  %n = f32[2,4]{1,0} negate(%t)\n"
       "  %m = f32[4]{0} negate(%a)\n"
       "  ROOT %both = (f32[2,4]{1,0}, f32[4]{0}) tuple(%n, %m)\n",
       12, "(f32[2,4]{1,0}, f32[4]{0})"},
      {"a slice computes what it keeps: 4",
       "  %n = f32[2,4]{1,0} negate(%t)\n"
       "  ROOT %s = f32[1,4]{1,0} slice(%n), slice={[0:1], [0:4]}\n",
       4, "f32[1,4]{1,0}"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(operations(row.body, row.result) == row.expected);
  }
}

TEST_CASE("without a fusion it is XLA's count") {
  const Program program = testing::toy_program(
      "ENTRY %main (p: f32[8]) -> f32[8] {\n"
      "  %p = f32[8]{0} parameter(0)\n"
      "  %e = f32[8]{0} exponential(%p)\n"
      "  ROOT %s = f32[8]{0} add(%e, %p)\n}\n");
  CHECK(count_element_ops(program, find_instruction(program, "e")) == Flops(8));
  CHECK(count_element_ops(program, find_instruction(program, "s")) == Flops(8));
  CHECK(count_element_ops(program, find_instruction(program, "p")) == Flops(0));
}

}  // namespace
}  // namespace spillway
