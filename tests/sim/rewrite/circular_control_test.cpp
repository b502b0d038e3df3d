// What a rewrite moved in front of what it was told to wait for waits no more.
#include "sim/rewrite/circular_control.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

TEST_CASE("only control dependencies on what stands later go") {
  struct Row {
    const char* name;
    const char* waits;  ///< of the second of three
    const char* left;   ///< empty: no attribute
  };
  const Row rows[] = {
      {"waits for nothing", "", ""},
      {"for what stands before", ", control-predecessors={%one}", "{%one}"},
      {"for what stands behind", ", control-predecessors={%three}", ""},
      {"for both", ", control-predecessors={%three, %one}", "{%one}"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = testing::toy_program(std::string(R"(
ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %one = f32[8]{0} negate(%a)
  %two = f32[8]{0} abs(%a))") + row.waits + R"(
  %three = f32[8]{0} add(%one, %two)
  ROOT %four = f32[8]{0} multiply(%two, %three)
}
)");
    const Program result = without_circular_control(program, program.entry);
    const InstructionId two = testing::find_instruction(result, "two");
    const auto left = result[two.computation].attribute(two.instruction, "control-predecessors");
    CHECK(left.value_or("") == row.left);
    CHECK((result.computations[two.computation] == program.computations[two.computation]) ==
          (std::string_view(row.waits).find("three") == std::string_view::npos));
  }
}

}  // namespace
}  // namespace spillway
