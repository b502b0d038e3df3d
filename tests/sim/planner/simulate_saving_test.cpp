// What saving a value without a name does to a whole step.
#include "sim/planner/simulate_saving.h"

#include <doctest/doctest.h>

#include "tests/sim/planner/example.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::Example;
using testing::read_example;
using testing::value_or_fail;

TEST_CASE("what does not run again is gone from the step, and reading it is not free") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  const ScheduleSettings order = evaluator.default_order();
  Policy policy = compiled_policy(evaluator.handles());
  for (std::size_t k = 0; k < policy.size(); ++k)
    if (is_name(evaluator.handles()[k]) && evaluator.handles()[k].saved_because.empty())
      policy[k] = Choice::kRecompute;
  const PolicyCase planned = value_or_fail(evaluator.evaluate_planned(policy, order));
  std::vector<WorthSaving> rows = find_unnamed_values(evaluator, policy);
  if (rows.empty()) rows.emplace_back();
  // A product of the backward loop that runs again, by hand.
  WorthSaving product;
  const Program step = value_or_fail(evaluator.rewrite_planned(policy, order));
  for (const Executed& executed : executed_computations(step))
    for (const InstructionIndex i : step[executed.id].instructions())
      if (product.spared_instructions.empty() &&
          step[executed.id][i].name.find(kRecomputedSuffix) != std::string_view::npos &&
          step[executed.id][i].opcode == Opcode::kFusion)
        product.spared_instructions.emplace_back(step[executed.id][i].name);
  REQUIRE_FALSE(product.spared_instructions.empty());
  product.bytes = Bytes(1000);
  std::vector<WorthSaving> costly = {product, product, product};
  costly[1].saving = Seconds(0.5);
  REQUIRE(!simulate_saving(evaluator, planned, order, 2, costly));
  REQUIRE(costly[0].simulated);
  CHECK(costly[0].simulated->step_before == planned.step);
  CHECK(costly[0].simulated->step < planned.step);
  CHECK(costly[0].simulated->peak_device == planned.peak_device + Bytes(1000));
  CHECK(costly[1].simulated->step == costly[0].simulated->step + Seconds(0.5));
  CHECK_FALSE(costly[2].simulated);  // beyond those that were asked for
}

TEST_CASE("a value is told instead of a name only where the step is then faster and fits") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator({.hbm_limit = Bytes(std::int64_t{110} << 30)});
  const PlanResult plan = value_or_fail(make_plan(evaluator, {.most_simulated = 60}));
  const auto rows = value_or_fail(find_saved_instead(evaluator, plan, 2));
  for (const WorthSaving& row : rows) {
    CHECK(row.simulated->step < plan.best.step);
    CHECK(row.simulated->peak_device <= evaluator.budget().room());
    CHECK_FALSE(row.instead_of.empty());
  }
}

/// The value that a program of the corpus is worth a name for most, with all of its names saved.
std::optional<WorthSaving> first_of(const std::string& name) {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return std::nullopt;
  const std::string folder = (*corpus / name).string();
  const Example example = testing::make_example(
      value_or_fail(read_program(folder)), value_or_fail(read_names(folder + "/names.json")),
      value_or_fail(read_profile(testing::source_path("hw_profiles/gb200.yaml"))));
  const Evaluator evaluator = example.evaluator();
  const auto rows = find_unnamed_values(evaluator, compiled_policy(evaluator.handles()));
  REQUIRE_FALSE(rows.empty());
  return rows.front();
}

TEST_CASE("an unrolled step misses the same value as a scanned one: attention's statistics") {
  const auto scanned = first_of("l8b_b2_allsaved"), unrolled = first_of("l8b4_unr_allsaved");
  if (!scanned || !unrolled) return;
  REQUIRE(scanned->values.size() == 1);
  REQUIRE(unrolled->values.size() == 1);
  CHECK(unrolled->values[0].shape.starts_with("f32["));
  const auto operation = [](const WorthSaving& row) {
    const std::string& path = row.values[0].op_name;
    return path.substr(path.rfind('/'));
  };
  CHECK(operation(*unrolled) == operation(*scanned));
  CHECK(unrolled->values[0].source == scanned->values[0].source);
  CHECK(unrolled->bytes == unrolled->values[0].bytes_per_layer * 4);
  CHECK(unrolled->kernels > Seconds(0));
}

}  // namespace
}  // namespace spillway
