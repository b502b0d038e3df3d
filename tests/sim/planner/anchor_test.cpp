// Steps anchored on a run: what is unchanged keeps its measured time, what a policy makes anew does
// not, and the search is right about both.
#include "sim/planner/anchor.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/planner/planner.h"
#include "sim/planner/policy_bounds.h"
#include "sim/planner/rerun.h"
#include "sim/rewrite/recompute.h"
#include "tests/sim/planner/example.h"
#include "tests/support/all_policies.h"

namespace spillway {
namespace {

using testing::Example;
using testing::read_example_with;
using testing::value_or_fail;

/// What an async start wraps, which has the cost of the start.
bool is_wrapped(const Program& program, ComputationId computation) {
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      if (program[id][i].opcode == Opcode::kAsyncStart &&
          std::ranges::find(program[id].called(i), computation) != program[id].called(i).end())
        return true;
  return false;
}

/// As if a run had taken so many times what the model says of each instruction.
MeasuredTimes times_of(const Example& example, double factor) {
  const CostTable table = costs(example.program, example.profile, example.topology);
  MeasuredTimes times;
  for (const Executed& executed : executed_computations(example.program))
    for (const InstructionIndex i : example.program[executed.id].instructions()) {
      const Cost& cost = table.cost({executed.id, i});
      if (cost.kernel != KernelClass::kFree && !is_wrapped(example.program, executed.id))
        times.emplace(example.program[executed.id][i].name, cost.time * factor);
    }
  return times;
}

Anchor anchor_of(const Example& example, double factor, std::optional<Seconds> step = {}) {
  return value_or_fail(make_anchor(example.program, example.schedule, example.profile,
                                   example.topology, {},
                                   {"run", times_of(example, factor), step, {}}));
}

Evaluator anchored(const Example& example, const Anchor& anchor, const BudgetWishes& wishes = {}) {
  return Evaluator(example.program, example.schedule, example.profile, example.topology,
                   example.names, example.budget(wishes), {.base = &anchor.costs});
}

Example example_of_two() { return read_example_with("keep", {"query_proj", "mlpwi_0"}); }

TEST_CASE("the residual is that of the replayed step, and decides whether policies are ranked") {
  const Example example = example_of_two();
  const Anchor anchor = anchor_of(example, 1.2);
  CHECK(anchor.measured > 200);
  CHECK(anchor.unmeasured == 0);
  CHECK(anchor.share_measured == doctest::Approx(1));
  CHECK(ratio(anchor.replayed_step, anchor.modelled_step) == doctest::Approx(1.2).epsilon(0.02));
  CHECK_FALSE(anchor.residual());
  CHECK_FALSE(anchor.ranks());
  struct Row {
    double measured_over_replayed;
    bool ranks;
  };
  // 1 / 0.909 and 1 / 1.112 are a tenth off, above and below.
  for (const Row& row :
       {Row{1, true}, Row{0.9092, true}, Row{0.9089, false}, Row{1.11, true}, Row{1.1112, false}}) {
    CAPTURE(row.measured_over_replayed);
    const Anchor at = anchor_of(example, 1.2, anchor.replayed_step * row.measured_over_replayed);
    CHECK(at.ranks() == row.ranks);
    CHECK(*at.residual() == doctest::Approx(1 / row.measured_over_replayed - 1));
  }
}

TEST_CASE("a run of another program is refused, and what it names besides is told") {
  const Example example = example_of_two();
  const auto made = make_anchor(example.program, example.schedule, example.profile,
                                example.topology, {}, {"run", {{"nowhere", Seconds(1)}}, {}, {}});
  REQUIRE_FALSE(made.ok());
  CHECK(to_text(made.error()) ==
        "run: error: names nothing that 'jit_train_step' runs\n  its names are another program's, "
        "or the program was compiled again since");
  MeasuredTimes times = times_of(example, 1);
  times.emplace("nowhere", Seconds(1));
  const Anchor anchor =
      value_or_fail(make_anchor(example.program, example.schedule, example.profile,
                                example.topology, {}, {"run", times, {}, {}}));
  CHECK(anchor.unmatched == std::vector<std::string>{"nowhere"});
}

TEST_CASE("what stays the same instruction has its measured time, and a copy of it the model's") {
  const Example example = example_of_two();
  const Anchor anchor = anchor_of(example, 3);
  const Evaluator evaluator = anchored(example, anchor);
  const CostTable modelled = costs(example.program, example.profile, example.topology);
  for (const Choice choice : {Choice::kOffload, Choice::kRecompute}) {
    Policy policy = compiled_policy(evaluator.handles());
    policy[0] = choice;
    const Program changed = evaluator.change(policy);
    const CostTable table = costs(changed, example.profile, example.topology, anchor.costs);
    const CostTable as_if_new = costs(changed, example.profile, example.topology);
    std::size_t measured = 0, made = 0, clones = 0;
    for (const Executed& executed : executed_computations(changed))
      for (const InstructionIndex i : changed[executed.id].instructions()) {
        const Cost& cost = table.cost({executed.id, i});
        const Cost& fresh = as_if_new.cost({executed.id, i});
        if (fresh.kernel == KernelClass::kFree || is_wrapped(changed, executed.id)) continue;
        const bool is_clone =
            changed[executed.id][i].name.find(kRecomputedSuffix) != std::string_view::npos;
        if (cost.bound == Bound::kMeasured) {
          ++measured;
          CHECK_FALSE(is_clone);
          // The very instruction of the compiled program.
          REQUIRE(ratio(cost.time, fresh.time) == doctest::Approx(3));
        } else {
          ++made;
          clones += is_clone;
          REQUIRE(cost.time == fresh.time);
        }
      }
    CHECK(measured > 150);
    CHECK(made > 0);
    CHECK((clones > 0) == (choice == Choice::kRecompute));
  }
}

TEST_CASE("anchored, the search finds what going through every policy finds, by valid bounds") {
  // Above the model's times and below: what a policy makes anew gets the model's.
  for (const double factor : {0.6, 1.5}) {
    CAPTURE(factor);
    const Example example = example_of_two();
    const Anchor anchor = anchor_of(example, factor);
    const Evaluator evaluator =
        anchored(example, anchor, {.hbm_limit = Bytes(std::int64_t{130} << 30)});
    const std::vector<Policy> policies = testing::all_policies(evaluator.handles());
    CaseBook book(evaluator, evaluator.default_order(), 2);
    REQUIRE(!book.simulate(policies));
    PolicyBounds bounds(evaluator);
    for (const Policy& policy : policies) {
      if (policy == compiled_policy(evaluator.handles())) continue;
      OpenPolicy closed;
      for (const Choice choice : policy) closed.push_back(OpenChoices({choice}));
      REQUIRE(bounds.of(closed).step <= book.at(policy).step);
    }
    const PlanResult plan = value_or_fail(make_plan(evaluator));
    CHECK(plan.proven);
    CHECK(plan.best.policy == book.best().policy);
    CHECK(plan.best.step == book.best().step);
  }
}

TEST_CASE("where nothing is ranked there are baselines and no search") {
  const Example example = example_of_two();
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = value_or_fail(make_plan(evaluator, {.ranks = false}));
  CHECK_FALSE(plan.ranked);
  CHECK(plan.best.policy == compiled_policy(plan.handles));
  CHECK(plan.baselines.front().name == "as compiled");
  CHECK(plan.alternatives.empty());
  CHECK(plan.reasons.empty());
}

TEST_CASE("on another machine measured times change as the model's do") {
  const Example example = example_of_two();
  const Anchor anchor = anchor_of(example, 2);
  const Evaluator evaluator = anchored(example, anchor);
  const Evaluator by_model = example.evaluator();
  PlanResult plan;
  plan.order = evaluator.default_order();
  plan.best = value_or_fail(evaluator.evaluate(compiled_policy(evaluator.handles())));
  const PlannedStep step = value_or_fail(make_planned_step(evaluator, plan, plan.best));
  for (const double factor : {1.0, 0.5}) {
    const HardwareProfile there = with_hbm(with_compute(example.profile, factor), factor);
    const Seconds measured = value_or_fail(OtherMachine(evaluator, there).run(step)).step;
    const Seconds modelled = value_or_fail(OtherMachine(by_model, there).run(step)).step;
    CHECK(ratio(measured, modelled) == doctest::Approx(2).epsilon(0.03));
  }
}

}  // namespace
}  // namespace spillway
