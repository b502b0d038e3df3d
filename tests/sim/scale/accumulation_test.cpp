#include "sim/scale/accumulation.h"

#include <doctest/doctest.h>

#include "tests/sim/scale/resize.h"

namespace spillway {
namespace {

/// Four micro batches of two sequences; the model has four layers too, which an inner loop takes
/// one by one.
Program accumulating_step(const std::string& forward, const std::string& backward,
                          const std::string& loop = "jit(step)/while") {
  return testing::toy_program(R"(
%layer (l: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %l = (s32[], f32[4,8]) parameter(0)
  %zero.1 = s32[] constant(0)
  %w.1 = f32[1,8] dynamic-slice(%l#1, %l#0, %zero.1), dynamic_slice_sizes={1,8}
  ROOT %l.next = (s32[], f32[4,8]) tuple(%l#0, %l#1)
}

%fewer (c: (s32[], f32[4,8])) -> pred[] {
  %c = (s32[], f32[4,8]) parameter(0)
  ROOT %lt.1 = pred[] compare(%c#0, %c#0), direction=LT
}

%micro (m: (s32[], s32[4,2,3], f32[4,8], f32[4])) -> (s32[], s32[4,2,3], f32[4,8], f32[4]) {
  %m = (s32[], s32[4,2,3], f32[4,8], f32[4]) parameter(0)
  %zero.2 = s32[] constant(0)
  %x = s32[1,2,3] dynamic-slice(%m#1, %m#0, %zero.2, %zero.2), dynamic_slice_sizes={1,2,3}
  %y = s32[1,2,3] add(%x, %x), metadata={op_name=")" +
                              forward + R"("}
  %z = s32[1,2,3] add(%y, %y), metadata={op_name=")" +
                              backward + R"("}
  %begin = (s32[], f32[4,8]) tuple(%zero.2, %m#2)
  %layers = (s32[], f32[4,8]) while(%begin), condition=%fewer, body=%layer, metadata={op_name="jit(step)/while/body/jvp()/while"}, backend_config={"known_trip_count":{"n":"4"}}
  %one = f32[1] constant({1})
  %losses = f32[4] dynamic-update-slice(%m#3, %one, %m#0)
  ROOT %m.next = (s32[], s32[4,2,3], f32[4,8], f32[4]) tuple(%m#0, %m#1, %layers#1, %losses)
}

%less (d: (s32[], s32[4,2,3], f32[4,8], f32[4])) -> pred[] {
  %d = (s32[], s32[4,2,3], f32[4,8], f32[4]) parameter(0)
  ROOT %lt.2 = pred[] compare(%d#0, %d#0), direction=LT
}

ENTRY %main {
  %tokens = s32[8,3] parameter(0)
  %w = f32[4,8] parameter(1)
  %zero = s32[] constant(0)
  %batches = s32[4,2,3] reshape(%tokens)
  %zero.f = f32[] constant(0)
  %none = f32[4] broadcast(%zero.f), dimensions={}
  %init = (s32[], s32[4,2,3], f32[4,8], f32[4]) tuple(%zero, %batches, %w, %none)
  %loop = (s32[], s32[4,2,3], f32[4,8], f32[4]) while(%init), condition=%less, body=%micro, metadata={op_name=")" +
                              loop + R"("}, backend_config={"known_trip_count":{"n":"4"}}
  ROOT %out = f32[4] copy(%loop#3)
}
)");
}

const char* const kForward = "jit(step)/while/body/jvp()/add";
const char* const kBackward = "jit(step)/while/body/transpose(jvp())/add";

TEST_CASE("the loop around forward and backward") {
  struct Row {
    const char* name;
    const char* forward;
    const char* backward;
    const char* loop;
    bool found;
  };
  const Row rows[] = {
      {"runs both", kForward, kBackward, "jit(step)/while", true},
      {"runs only what is transposed", kBackward, kBackward, "jit(step)/jvp()/while", false},
      {"has no backward pass", kForward, kForward, "jit(step)/while", false},
      {"is itself differentiated", kForward, kBackward, "jit(step)/jvp()/while", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = accumulating_step(row.forward, row.backward, row.loop);
    const auto found = find_accumulation_loop(program);
    REQUIRE(found.has_value() == row.found);
    if (!found) continue;
    CHECK(program[found->loop].name == "loop");
    CHECK(found->steps == 4);
  }
}

TEST_CASE("more micro batches: as large, over a larger argument; as many layers") {
  const Program program = accumulating_step(kForward, kBackward);
  const Result<Program> made = with_accumulation(program, 6);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : to_text(made.error())));
  CHECK(find_accumulation_loop(*made)->steps == 6);
  CHECK(testing::shape_of(*made, "tokens") == "s32[12,3]");
  CHECK(testing::shape_of(*made, "batches") == "s32[6,2,3]");
  CHECK(testing::shape_of(*made, "x") == "s32[1,2,3]");
  CHECK(testing::shape_of(*made, "out") == "f32[6]");
  CHECK(testing::shape_of(*made, "w") == "f32[4,8]");
  CHECK(testing::shape_of(*made, "layers") == "(s32[], f32[4,8])");
  const InstructionId layers = testing::find_instruction(*made, "layers");
  CHECK(known_trip_count((*made)[layers.computation], layers.instruction) == 4);
}

TEST_CASE("as many as compiled: the same program") {
  const Program program = accumulating_step(kForward, kBackward);
  const Result<Program> made = with_accumulation(program, 4);
  REQUIRE(made.ok());
  for (const ComputationId id : ids(program.computations))
    CHECK(made->computations[id] == program.computations[id]);
}

TEST_CASE("what cannot be accumulated says so") {
  const Program program = accumulating_step(kForward, kForward);
  CHECK(to_text(with_accumulation(program, 2).error()) ==
        "toy.hlo: error: has no loop around forward and backward, so that it does not accumulate "
        "gradients\n"
        "  compile the step with two micro batches or more, scanned; a batch without accumulation "
        "is --batch");
  CHECK(with_accumulation(accumulating_step(kForward, kBackward), 0).error().text ==
        "a step has at least one micro batch");
}

}  // namespace
}  // namespace spillway
