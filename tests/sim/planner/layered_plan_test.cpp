// Layers of unrolled steps that are treated differently, against all subsets of them.
#include "sim/planner/layered_plan.h"

#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "sim/planner/planner.h"
#include "tests/sim/planner/example.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::Example;
using testing::value_or_fail;

std::optional<Example> unrolled_example(const std::string& name,
                                        const std::vector<std::string>& names) {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return std::nullopt;
  const std::string folder = (*corpus / name).string();
  Example example = testing::make_example(
      value_or_fail(read_program(folder)), value_or_fail(read_names(folder + "/names.json")),
      value_or_fail(read_profile(testing::source_path("hw_profiles/gb200.yaml"))));
  std::erase_if(example.names.names, [&names](const CheckpointName& one) {
    return std::ranges::find(names, one.name) == names.end();
  });
  return example;
}

TEST_CASE("of four unrolled layers the plan takes the best subset") {
  const auto example = unrolled_example("l8b4_unr_allsaved", {"decoder_layer_input", "mlpwi_0"});
  if (!example) return;
  const Evaluator all = example->evaluator();
  const ScheduleSettings order = all.default_order();
  Policy kept = compiled_policy(all.handles());
  std::size_t split = 0;
  while (all.handles()[split].name != "mlpwi_0") ++split;
  Policy recomputed = kept;
  recomputed[split] = Choice::kRecompute;
  // Room for some layers, and not for all.
  const Bytes most = value_or_fail(all.evaluate(kept, order)).peak_device;
  const Bytes least = value_or_fail(all.evaluate(recomputed, order)).peak_device;
  REQUIRE(least < most);
  const Evaluator evaluator = example->evaluator({.hbm_limit = least + (most - least) / 2});
  const PlanResult plan = value_or_fail(make_plan(evaluator));
  REQUIRE(plan.fits);
  REQUIRE(plan.by_layer);
  const LayeredPlan& found = *plan.by_layer;
  CHECK(found.outcome.fit.fits);
  CHECK(found.outcome.step < plan.best.step);
  CHECK(found.handle == "mlpwi_0");
  CHECK(found.of_layers == 4);

  // The same subsets, one after another.
  Seconds fastest = plan.best.step;
  for (unsigned bits = 1; bits < 15; ++bits) {
    std::vector<std::uint32_t> layers;
    for (std::uint32_t layer = 0; layer < 4; ++layer)
      if (bits >> layer & 1U) layers.push_back(layer);
    std::vector<Handle> handles = evaluator.handles();
    split_layers(handles, evaluator.unrolled(), {"mlpwi_0", layers});
    Policy policy = plan.best.policy;
    policy.insert(policy.begin() + static_cast<std::ptrdiff_t>(split) + 1, found.choice);
    const PolicyCase one = value_or_fail(evaluator.evaluate_split(handles, policy, plan.order));
    if (one.fit.fits) fastest = std::min(fastest, one.step);
  }
  CHECK(found.outcome.step == fastest);
  // All layers or none is what the name as a whole has.
  std::vector<Handle> handles = evaluator.handles();
  split_layers(handles, evaluator.unrolled(), {"mlpwi_0", {0, 1}});
  Policy same = plan.best.policy;
  same.insert(same.begin() + static_cast<std::ptrdiff_t>(split) + 1, plan.best.policy[split]);
  CHECK(value_or_fail(evaluator.evaluate_split(handles, same, plan.order)).step == plan.best.step);
}

TEST_CASE("scanned layers are not split so") {
  const Example example = testing::read_example_with("keep", {"mlpwi_0"});
  const Evaluator evaluator = example.evaluator({.hbm_limit = Bytes(std::int64_t{90} << 30)});
  CHECK_FALSE(value_or_fail(make_plan(evaluator)).by_layer);
}

}  // namespace
}  // namespace spillway
