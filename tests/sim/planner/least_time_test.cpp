#include "sim/planner/least_time.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// a, then two gathers: g hangs on a, h on what b makes of g. Beside them s hangs on nothing.
constexpr const char* kText = R"(ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %a = f32[8]{0} negate(%p)
  %g = f32[8]{0} all-reduce(%a), replica_groups={}, to_apply=%sum
  %s = f32[8]{0} sine(%p)
  %b = f32[8]{0} negate(%g)
  %h = f32[8]{0} all-reduce(%b), replica_groups={}, to_apply=%sum
  ROOT %c = f32[8]{0} add(%h, %s)
}
)";
constexpr const char* kSum = R"(%sum {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}
)";

TEST_CASE("kernels one after another, or a chain of collectives with what stands around them") {
  const Program program = testing::toy_program(std::string(kSum) + kText);
  const Computation& entry = program.entry_computation();
  struct Row {
    const char* name;
    double a, s, b, c, g, h, least;
  };
  const Row rows[] = {
      {"no collective", 1, 2, 3, 4, 0, 0, 10},
      {"hidden by what does not hang on it", 1, 100, 1, 1, 5, 5, 103},
      {"each between its kernels", 1, 0, 2, 3, 10, 20, 36},
      {"what runs beside them hides a part", 1, 4, 2, 3, 10, 20, 36},
      {"one alone", 1, 4, 2, 3, 10, 0, 16},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<Seconds> kernels(entry.size()), collectives(entry.size());
    for (const InstructionIndex i : entry.instructions()) {
      const std::string_view name = entry[i].name;
      if (name == "a") kernels[i.index] = Seconds(row.a);
      if (name == "s") kernels[i.index] = Seconds(row.s);
      if (name == "b") kernels[i.index] = Seconds(row.b);
      if (name == "c") kernels[i.index] = Seconds(row.c);
      if (name == "g") collectives[i.index] = Seconds(row.g);
      if (name == "h") collectives[i.index] = Seconds(row.h);
    }
    CHECK(least_time(entry, kernels, collectives).value() == doctest::Approx(row.least));
  }
}

}  // namespace
}  // namespace spillway
