// The answers beside a plan: sensitivity, requirements and confidence, each against simulating what
// it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/planner/confidence.h"
#include "sim/planner/requirements.h"
#include "sim/planner/sensitivity.h"
#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::Example;
using testing::read_example;
using testing::value_or_fail;

/// Policies to ask about; whether they are the best there are does not matter here.
PlanResult plan_of(const Evaluator& evaluator) {
  return value_or_fail(make_plan(evaluator, {.most_simulated = 40}));
}

/// As if the answer were to offload every name, which on this link stands in the way.
PlanResult plan_to_offload(const Evaluator& evaluator) {
  PlanResult plan;
  plan.handles = evaluator.handles();
  plan.order = evaluator.default_order();
  Policy policy = compiled_policy(plan.handles);
  for (std::size_t k = 0; k < policy.size(); ++k)
    if (is_name(plan.handles[k])) policy[k] = Choice::kOffload;
  CaseBook cases(evaluator, plan.order, 2);
  REQUIRE(!cases.simulate({policy}));
  plan.best = cases.at(policy);
  plan.fits = plan.best.fit.fits;
  return plan;
}

HardwareProfile turned(const HardwareProfile& profile, Knob knob, double factor) {
  if (knob == Knob::kLink) return with_link(profile, factor);
  return knob == Knob::kCompute ? with_compute(profile, factor) : with_hbm(profile, factor);
}

Seconds step_on(const Evaluator& evaluator, const PlanResult& plan, const PolicyCase& policy,
                const HardwareProfile& profile) {
  return value_or_fail(OtherMachine(evaluator, profile)
                           .run(value_or_fail(make_planned_step(evaluator, plan, policy))))
      .step;
}

/// The fastest of what the plan shows and fits.
Seconds best_on(const Evaluator& evaluator, const PlanResult& plan,
                const HardwareProfile& profile) {
  Seconds best(1e9);
  for (const PolicyCase& policy : shown_policies(plan))
    if (policy.fit.fits) best = std::min(best, step_on(evaluator, plan, policy, profile));
  return best;
}

TEST_CASE(
    "each turned case is the fastest of the policies shown, and switches lie where they say") {
  for (const char* machine : {"gb200", "a100"}) {
    CAPTURE(machine);
    const Example example = read_example("keep", machine);
    const Evaluator evaluator = example.evaluator(
        {.hbm_limit = Bytes(std::int64_t{60} << 30), .fraction = {}, .host_limit = {}});
    const PlanResult plan = plan_of(evaluator);
    const Sensitivity found = value_or_fail(find_sensitivity(evaluator, plan, 2));
    REQUIRE(found.cases.size() == std::size(kKnobs) * std::size(kFactors));
    for (const TurnedCase& row : found.cases) {
      CAPTURE(name_of(row.knob));
      CAPTURE(row.factor);
      if (row.knob == Knob::kHbmBudget) continue;
      const HardwareProfile profile = turned(example.profile, row.knob, row.factor);
      CHECK(row.step_of_plan == step_on(evaluator, plan, plan.best, profile));
      const Seconds best = best_on(evaluator, plan, profile);
      CHECK(row.step >= best);
      CHECK(row.step <= best * (1 + 2 * kAsGood));
      CHECK((row.best == plan.best.policy) == (row.step == row.step_of_plan));
    }
    for (const Switch& row : found.switches) {
      CAPTURE(name_of(row.knob));
      CAPTURE(row.factor);
      if (row.knob == Knob::kHbmBudget) continue;
      const double nearer = row.factor + (row.factor < 1 ? 1 : -1) * 1.5 * kSwitchWidth;
      const HardwareProfile there = turned(example.profile, row.knob, row.factor),
                            before = turned(example.profile, row.knob, nearer);
      CHECK(step_on(evaluator, plan, plan.best, there) * (1 - kAsGood) >
            best_on(evaluator, plan, there));
      CHECK(step_on(evaluator, plan, plan.best, before) * (1 - 2 * kAsGood) <=
            best_on(evaluator, plan, before));
    }
  }
}

TEST_CASE("with another budget it is the fastest of those shown that fit it") {
  const Example example = read_example("keep");
  const Bytes pool(std::int64_t{120} << 30);
  const Evaluator evaluator =
      example.evaluator({.hbm_limit = pool, .fraction = {}, .host_limit = {}});
  const PlanResult plan = plan_of(evaluator);
  const Sensitivity found = value_or_fail(find_sensitivity(evaluator, plan, 2));
  const auto fastest = [&](double factor) {
    Seconds best(1e9);
    for (const PolicyCase& policy : shown_policies(plan))
      if (ratio(policy.peak_device, pool) <= factor) best = std::min(best, policy.step);
    return best;
  };
  int rows = 0;
  for (const TurnedCase& row : found.cases) {
    if (row.knob != Knob::kHbmBudget) continue;
    CAPTURE(row.factor);
    ++rows;
    CHECK(row.step >= fastest(row.factor));
    CHECK(row.step <= fastest(row.factor) * (1 + kAsGood));
    CHECK(row.plan_fits == (ratio(plan.best.peak_device, pool) <= row.factor));
  }
  CHECK(rows == 4);
  for (const Switch& row : found.switches) {
    if (row.knob != Knob::kHbmBudget) continue;
    CAPTURE(row.factor);
    if (row.factor < 1) {
      CHECK(row.factor == ratio(plan.best.peak_device, pool));
    } else {
      CHECK(fastest(row.factor) < plan.best.step);
      CHECK(fastest(row.factor - 1e-9) >= plan.best.step * (1 - kAsGood));
    }
  }
}

TEST_CASE("needed rates hide the copies, and a little less does not") {
  const Example example = read_example("offload_all", "h100");
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_to_offload(evaluator);
  const Requirements need = value_or_fail(find_requirements(evaluator, plan));
  CHECK(need.hbm == plan.best.peak_device);
  CHECK(need.host == plan.best.host);
  REQUIRE(need.exposed > need.tolerance);
  const PlannedStep step = value_or_fail(make_planned_step(evaluator, plan, plan.best));
  const HostLink& link = example.profile.link;
  const auto exposed = [&](BytesPerSecond out, BytesPerSecond in) {
    const SimResult run =
        value_or_fail(OtherMachine(evaluator, with_link_rates(example.profile, out, in)).run(step));
    return run.exposed_device_to_host + run.exposed_host_to_device;
  };
  const BytesPerSecond fast_out = link.device_to_host.value * kMostLink,
                       fast_in = link.host_to_device.value * kMostLink;
  if (need.device_to_host) {
    CHECK(exposed(*need.device_to_host, fast_in) <= need.tolerance);
    CHECK(exposed(*need.device_to_host / 1.01, fast_in) > need.tolerance);
  } else {
    CHECK(exposed(fast_out, fast_in) > need.tolerance);
  }
  if (need.host_to_device) {
    CHECK(exposed(fast_out, *need.host_to_device) <= need.tolerance);
    CHECK(exposed(fast_out, *need.host_to_device / 1.01) > need.tolerance);
  } else {
    CHECK(exposed(fast_out, fast_in) > need.tolerance);
  }
  CHECK(need.exposed_at_most_link == exposed(fast_out, fast_in));
}

TEST_CASE("at the rate at which two plans change places they take equally long") {
  const Example example = read_example("offload_all", "h100");
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_to_offload(evaluator);
  const Requirements need = value_or_fail(find_requirements(evaluator, plan));
  REQUIRE(!need.break_even.empty());
  for (const BreakEven& row : need.break_even) {
    CAPTURE(row.name);
    CaseBook cases(evaluator, plan.order, 2);
    REQUIRE(!cases.simulate({row.moving, row.rival}));
    const PolicyCase &moving = cases.at(row.moving), &rival = cases.at(row.rival);
    CHECK(rival.step == row.rival_step);
    const auto wins = [&](double factor) {
      const HardwareProfile profile = with_link(example.profile, factor);
      return step_on(evaluator, plan, moving, profile) <= step_on(evaluator, plan, rival, profile);
    };
    if (!row.factor) CHECK(!wins(kMostLink));
    if (!row.factor || row.always) continue;
    CHECK(wins(*row.factor));
    CHECK(!wins(*row.factor / 1.01));
  }
}

TEST_CASE("without doubts the band is the step, and questions have one answer") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_of(evaluator);
  const Doubts none{.kernels = 0,
                    .link = 0,
                    .rewrite = 0,
                    .jitter = 0,
                    .memory = 0,
                    .fragmentation = 0,
                    .link_because = ""};
  const Confidence sure = value_or_fail(find_confidence(evaluator, plan, none, 2));
  for (const Seconds at : {sure.low, sure.middle, sure.high})
    CHECK(at.value() == doctest::Approx(plan.best.step.value()).epsilon(1e-4));
  CHECK(sure.out_of_memory == doctest::Approx(0));
  REQUIRE(!sure.rival.empty());
  CHECK(sure.loses == doctest::Approx(sure.rival_step < plan.best.step ? 1 : 0));
}

TEST_CASE("a rival fits, or there is none") {
  const Example example = read_example("keep");
  struct Row {
    std::int64_t gib;
    bool has_rival;
  };
  // With 25 GiB something fits that offloads, and without the host nothing does.
  for (const Row& row : {Row{22, false}, Row{25, true}}) {
    CAPTURE(row.gib);
    const Evaluator evaluator = example.evaluator({.hbm_limit = Bytes(row.gib << 30)});
    const PlanResult plan = plan_of(evaluator);
    REQUIRE(plan.fits == row.has_rival);
    const Confidence sure =
        value_or_fail(find_confidence(evaluator, plan, default_doubts(example.profile), 2));
    CHECK(sure.rival.empty() != row.has_rival);
    if (!row.has_rival) continue;
    CHECK(sure.rival == plan.alternatives.front().policy);
    CHECK_FALSE(sure.rival_recomputes);
  }
}

TEST_CASE("more doubt, a wider band; the same doubt, the same numbers on any threads") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_of(evaluator);
  const Doubts doubts = default_doubts(example.profile);
  const Confidence one = value_or_fail(find_confidence(evaluator, plan, doubts, 1));
  const Confidence two = value_or_fail(find_confidence(evaluator, plan, doubts, 2));
  CHECK(one.low == two.low);
  CHECK(one.high == two.high);
  CHECK(one.loses == two.loses);
  CHECK(one.low < one.middle);
  CHECK(one.middle < one.high);
  // Kernels 5 %, the program's order 2 %, jitter 1 %: 1.28 deviations each way.
  CHECK(ratio(one.high - one.low, one.middle) < 2 * 1.3 * 0.06);
  CHECK(ratio(one.high - one.low, one.middle) > 2 * 1.2 * 0.045);
  Doubts more = doubts;
  more.kernels = 0.1;
  const Confidence wide = value_or_fail(find_confidence(evaluator, plan, more, 2));
  CHECK(wide.high - wide.low > one.high - one.low);
  CHECK(one.out_of_memory > 0);  // the plan fills 0.997 of the pool
  CHECK(one.out_of_memory < 1);
}

}  // namespace
}  // namespace spillway
