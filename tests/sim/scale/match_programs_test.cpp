#include "sim/scale/match_programs.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/sim/scale/toy_step.h"

namespace spillway {
namespace {

/// "a.1-b.7": names of what matches, in the order of the first program.
std::string describe(const Program& a, const Program& b) {
  auto pairs = match_programs(a, b).instructions;
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const auto& [x, y] : pairs)
    text += (text.empty() ? "" : " ") + std::string(a[x].name) + "-" + std::string(b[y].name);
  return text;
}

TEST_CASE("what JAX made is found again under other names, in loops too") {
  const Program a = testing::toy_step({.batch = 2}),
                b = testing::toy_step({.batch = 4, .suffix = ".9"});
  CHECK(describe(a, b) ==
        "state-state.9 next-next.9 state2-state2.9 lt-lt.9 tokens-tokens.9 table-table.9 w-w.9 "
        "embed-embed.9 flat-flat.9 h-h.9 wide-wide.9 scores-scores.9 call-call.9 zero-zero.9 "
        "loop-loop.9 out-out.9");
}

TEST_CASE("of several of one kind those match that have more dimensions in common") {
  const Program a = testing::read_entry(
      "%x = f32[2,8] parameter(0)\n %w1 = f32[8,4] parameter(1)\n %w2 = f32[8,5] parameter(2)\n"
      " %y1 = f32[2,4] dot(%x, %w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " %y2 = f32[2,5] dot(%x, %w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " ROOT %out = (f32[2,4], f32[2,5]) tuple(%y1, %y2)\n");
  const Program b = testing::read_entry(
      "%x = f32[6,8] parameter(0)\n %w1 = f32[8,4] parameter(1)\n %w2 = f32[8,5] parameter(2)\n"
      " %y1 = f32[6,5] dot(%x, %w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " %y2 = f32[6,4] dot(%x, %w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " ROOT %out = (f32[6,4], f32[6,5]) tuple(%y2, %y1)\n");
  CHECK(describe(a, b) == "x-x w1-w1 w2-w2 y1-y2 y2-y1 out-out");
}

TEST_CASE("what only one of the two has more often matches nothing") {
  const Program a = testing::read_entry(
      "%x = f32[2] parameter(0)\n %y = f32[2] add(%x, %x)\n ROOT %z = f32[2] add(%y, %y)\n");
  const Program b =
      testing::read_entry("%x = f32[4] parameter(0)\n ROOT %y = f32[4] add(%x, %x)\n");
  CHECK(describe(a, b) == "x-x");
}

}  // namespace
}  // namespace spillway
