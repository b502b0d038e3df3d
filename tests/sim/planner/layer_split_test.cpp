// Splits between two policies that were simulated, on a toy of four layers.
#include "sim/planner/layer_split.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/planner/planner.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::Example;
using testing::toy_example;
using testing::value_or_fail;

TEST_CASE("as many layers as there is room for, and what lies between the two policies") {
  const Example example = toy_example(testing::ToyScan{}.text());
  const PlanResult all = value_or_fail(make_plan(example.evaluator()));
  const auto hbm = [](Bytes limit) {
    return BudgetWishes{.hbm_limit = limit, .fraction = {}, .host_limit = {}};
  };
  std::size_t found = 0;
  // From what the least needs to what the fastest needs, a layer's slice at a time.
  for (Bytes limit = all.pareto.front().peak_device; limit <= all.pareto.back().peak_device;
       limit += Bytes(256)) {
    CAPTURE(limit.value());
    const Evaluator evaluator = example.evaluator(hbm(limit));
    const PlanResult plan = value_or_fail(make_plan(evaluator));
    if (!plan.split) continue;
    ++found;
    const LayerSplit& split = *plan.split;
    CHECK(split.of_layers == 4);
    CHECK(split.layers >= 1);
    CHECK(split.layers < 4);
    CHECK(split.step < plan.best.step);
    CHECK(split.peak_device <= limit);
    // One more layer would not fit.
    std::size_t k = 0;
    while (plan.handles[k].name != split.handle) ++k;
    Policy policy = plan.best.policy;
    policy[k] = split.choice;
    const PolicyCase other = value_or_fail(evaluator.evaluate(policy, evaluator.default_order()));
    const double more = ratio(other.peak_device - plan.best.peak_device, Bytes(4));
    CHECK(static_cast<double>(plan.best.peak_device.value()) +
              static_cast<double>(split.layers + 1) * more >
          static_cast<double>(limit.value()));
    CHECK(
        std::abs(split.step.value() - (plan.best.step + (other.step - plan.best.step) *
                                                            (static_cast<double>(split.layers) / 4))
                                          .value()) < 1e-12);
  }
  CHECK(found > 0);
}

}  // namespace
}  // namespace spillway
