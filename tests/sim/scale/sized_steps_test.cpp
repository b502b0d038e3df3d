#include "sim/scale/sized_steps.h"

#include <doctest/doctest.h>

#include "tests/sim/planner/example.h"
#include "tests/sim/scale/resize.h"
#include "tests/sim/scale/toy_step.h"

namespace spillway {
namespace {

using testing::toy_step;

std::vector<std::string> sizes_of(const std::vector<SizedStep>& steps) {
  std::vector<std::string> sizes;
  for (const SizedStep& step : steps) sizes.push_back(size_text(step.size));
  return sizes;
}

TEST_CASE("a step for every size asked for, and how each was made") {
  const Program first = toy_step({.batch = 2}), second = toy_step({.batch = 4});
  const auto steps = make_sized_steps(
      first, &second, {}, {.axis = SizeAxis::kBatch, .first = 2, .second = 4, .sizes = {2, 8}});
  REQUIRE(steps.ok());
  CHECK(sizes_of(*steps) == std::vector<std::string>{"batch 2", "batch 8"});
  CHECK(steps->at(0).assumptions.empty());
  REQUIRE(steps->at(1).assumptions.size() == 2);
  CHECK(steps->at(1).assumptions[0] ==
        "batch 8: the second program, of batch 4, resized, its fusions as they are; beyond both "
        "dumps");
  CHECK(steps->at(1).assumptions[1].ends_with("(+0.0 %)"));
  CHECK(testing::shape_of(steps->at(1).program, "flat") == "f32[64,4]");
}

TEST_CASE("global shapes of names grow with the batch of all devices") {
  struct Row {
    std::vector<std::int64_t> before, after;
  };
  const Row rows[] = {
      {{4, 8, 4}, {16, 8, 4}},  // two devices with a batch of 2, now of 8
      {{2, 8, 4}, {8, 8, 4}},   // each has all of it
      {{32, 4}, {128, 4}},      // tokens in one dimension
      {{100, 3}, {100, 3}},     // no batch in it
  };
  const Program first = toy_step({.batch = 2}), second = toy_step({.batch = 4});
  for (const Row& row : rows) {
    NameList names;
    names.names.emplace_back();
    names.names[0].shape = row.before;
    names.devices = 2;
    const auto steps = make_sized_steps(
        first, &second, names, {.axis = SizeAxis::kBatch, .first = 2, .second = 4, .sizes = {8}});
    REQUIRE(steps.ok());
    CHECK(steps->front().names.names[0].shape == row.after);
  }
}

TEST_CASE("sizes that make no sense") {
  struct Row {
    SizeRequest request;
    const char* text;
  };
  const Row rows[] = {
      {{.first = 2, .second = 2, .sizes = {4}}, "the two dumps are both of batch 2"},
      {{.first = 0, .second = 2, .sizes = {4}}, "batch 0 is no size"},
      {{.first = 2, .second = 4, .sizes = {-1}}, "batch -1 is no size"},
      {{.first = 2, .second = 4, .sizes = {1e6}},
       "batch 1e+06 is more than 1000 times that of the dumps"},
  };
  const Program first = toy_step({.batch = 2}), second = toy_step({.batch = 4});
  for (const Row& row : rows) {
    const auto steps = make_sized_steps(first, &second, {}, row.request);
    REQUIRE(!steps.ok());
    CHECK(steps.error().kind == ErrorKind::kUsage);
    CHECK(steps.error().text == row.text);
  }
}

TEST_CASE("dumps that differ in the other dimension of their tokens") {
  const testing::Example first = testing::read_example("keep"),
                         second = testing::read_example("keep_batch_32");
  const auto steps = [&](SizeAxis axis) {
    return make_sized_steps(first.program, &second.program, {},
                            {.axis = axis, .first = 64, .second = 32, .sizes = {16}});
  };
  CHECK(steps(SizeAxis::kBatch).ok());
  const auto wrong = steps(SizeAxis::kSequence);
  REQUIRE(!wrong.ok());
  CHECK(to_text(wrong.error()) ==
        "error: the two dumps differ in batch, and not in sequence: their tokens are s32[8,8193] "
        "and s32[4,8193] a device\n  for example --batch-of-dumps 2,1 --batch 4");
}

}  // namespace
}  // namespace spillway
