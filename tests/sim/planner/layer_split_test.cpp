// Splits between two policies that were simulated.
#include "sim/planner/layer_split.h"

#include <doctest/doctest.h>

#include "sim/planner/planner.h"
#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::Example;
using testing::read_example;
using testing::read_example_with;
using testing::value_or_fail;

TEST_CASE("as many layers as there is room for, and what lies between the two policies") {
  // Everything recomputed leaves room for a part of what the smallest name saves.
  const Example example = read_example("keep");
  const BudgetWishes wishes = {
      .hbm_limit = Bytes(std::int64_t{47} << 30), .fraction = {}, .host_limit = Bytes(1)};
  const Evaluator evaluator = example.evaluator(wishes);
  const PlanResult plan = value_or_fail(make_plan(evaluator));
  REQUIRE(plan.split.has_value());
  const LayerSplit& split = *plan.split;
  CHECK(split.of_layers == 32);
  REQUIRE(split.layers >= 1);
  CHECK(split.layers < split.of_layers);
  CHECK(split.step < plan.best.step);
  CHECK(split.peak_device <= example.budget(wishes).pool);
  std::size_t k = 0;
  while (plan.handles[k].name != split.handle) ++k;
  Policy policy = plan.best.policy;
  policy[k] = split.choice;
  const PolicyCase all = value_or_fail(evaluator.evaluate(policy, evaluator.default_order()));
  CHECK_FALSE(all.fit.fits);
  // One more layer would not fit.
  const double layer = static_cast<double>((all.peak_device - plan.best.peak_device).value()) / 32;
  CHECK(static_cast<double>(plan.best.peak_device.value()) +
            static_cast<double>(split.layers + 1) * layer >
        static_cast<double>(example.budget(wishes).pool.value()));
  CHECK((plan.best.step - split.step).value() ==
        doctest::Approx((plan.best.step - all.step).value() * static_cast<double>(split.layers) /
                        32));
}

TEST_CASE("a plan that nothing stands in the way of needs no split") {
  const Example example = read_example_with("keep", {"mlpwi_0"});
  const PlanResult plan = value_or_fail(make_plan(example.evaluator()));
  REQUIRE(plan.fits);
  CHECK_FALSE(plan.split.has_value());
}

}  // namespace
}  // namespace spillway
