#include "sim/rewrite/copy_carries.h"

#include <doctest/doctest.h>

#include "model/program/call_graph.h"
#include "model/program/validate.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/rewrite/run_toy.h"

namespace spillway {
namespace {

using testing::scan;
using testing::Scanned;
using testing::ToyScan;

int copies_of_counter(const Program& program, InstructionId loop) {
  const Computation& body = program[body_of(program, loop)];
  int copies = 0;
  for (const InstructionIndex i : body.instructions())
    copies +=
        body[i].opcode == Opcode::kCopy && body.operands(i)[0] == Operand{body.parameters()[0], 1};
  return copies;
}

TEST_CASE("bodies that read their counter read a copy, once") {
  ToyScan toy;
  toy.counted = true;
  toy.width = 3;
  const Scanned start = scan(toy);
  const Residual& residual = start.table.residuals[ResidualId(0)];
  const Program copied = copy_carries(start.program);
  const auto unsound = validate(copied);
  CHECK_MESSAGE(!unsound, (unsound ? to_text(*unsound) : ""));
  CHECK(testing::run_toy(copied) == testing::run_toy(start.program));
  for (const InstructionId loop : {residual.forward_loop, residual.backward_loop}) {
    CHECK(copies_of_counter(start.program, loop) == 0);
    CHECK(copies_of_counter(copied, loop) == 1);
  }
  const Program again = copy_carries(copied);
  for (const ComputationId id : ids(again.computations))
    CHECK(again.computations[id] == copied.computations[id]);
}

TEST_CASE("a loop whose counter XLA does not name stays") {
  const Scanned start = scan(ToyScan{});
  const Program copied = copy_carries(start.program);
  for (const ComputationId id : ids(copied.computations))
    CHECK(copied.computations[id] == start.program.computations[id]);
}

}  // namespace
}  // namespace spillway
