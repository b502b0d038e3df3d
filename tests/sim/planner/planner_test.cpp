// The search against every policy, one by one, on the dumps of examples/ and on toys.
#include "sim/planner/planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "model/base/format.h"
#include "model/plan/check_plan.h"
#include "sim/planner/policy_bounds.h"
#include "tests/model/diagnostics/annotated_scan.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/planner/example.h"
#include "tests/support/all_policies.h"

namespace spillway {
namespace {

using testing::all_policies;
using testing::Example;
using testing::Fetch;
using testing::read_example;
using testing::read_example_with;
using testing::Save;
using testing::toy_example;
using testing::ToyScan;
using testing::value_or_fail;

/// A scan with one stack in HBM and one on the host.
std::string scan_text() {
  return ToyScan{.a = {}, .b = {Save::kAsync, Fetch::kAsync, true}}.text();
}

/// The scan, and behind it a conditional whose branches take very different time.
std::string scan_and_branches_text() {
  std::string text = scan_text();
  const auto replace = [&text](std::string_view from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
  std::string busy = "%busy () -> f32[] {\n  %y0 = f32[64]{0} parameter(0)\n";
  for (int k = 1; k <= 40; ++k)
    busy += "  %y" + std::to_string(k) + " = f32[64]{0} tanh(%y" + std::to_string(k - 1) + ")\n";
  busy += "}\n";
  std::string as_busy = busy;
  as_busy.replace(as_busy.find("%busy"), 5, "%same");
  replace("ENTRY", busy + as_busy + "ENTRY");
  replace("ROOT %end = f32[64]{0} negate(%gradient)",
          "%which = pred[] constant(true)\n  ROOT %end = f32[64]{0} conditional(%which, %gradient, "
          "%gradient), true_computation=%busy, false_computation=%same");
  return text;
}

struct Named {
  const char* name;
  Example example;
};

std::vector<Named> examples() {
  std::vector<Named> found;
  found.push_back({"keep", read_example_with("keep", {"query_proj", "mlpwi_0"})});
  found.push_back({"offload_qkv", read_example_with("offload_qkv", {"query_proj", "key_proj"})});
  found.push_back({"on pcie", read_example_with("offload_all", {"mlpwi_1"}, "h100")});
  found.push_back({"a toy scan", toy_example(scan_text())});
  found.push_back({"a toy scan and branches", toy_example(scan_and_branches_text())});
  return found;
}

PlanResult plan_of(const Evaluator& evaluator, const PlanOptions& options = {}) {
  return value_or_fail(make_plan(evaluator, options));
}

/// As the planner does: the compiled policy in its own order, others in XLA's.
PolicyCase case_of(const Evaluator& evaluator, const Policy& policy) {
  return value_or_fail(evaluator.evaluate_planned(policy, evaluator.default_order()));
}

std::vector<PolicyCase> evaluate_all(const Evaluator& evaluator) {
  std::vector<PolicyCase> cases;
  for (const Policy& policy : all_policies(evaluator.handles()))
    cases.push_back(case_of(evaluator, policy));
  return cases;
}

std::vector<PolicyCase> that_fit(const std::vector<PolicyCase>& cases) {
  std::vector<PolicyCase> fitting;
  for (const PolicyCase& c : cases)
    if (c.fit.fits) fitting.push_back(c);
  return fitting;
}

/// The n different values of HBM that policies need, ascending.
std::vector<Bytes> peaks_of(const std::vector<PolicyCase>& cases) {
  std::set<Bytes> peaks;
  for (const PolicyCase& c : cases) peaks.insert(c.peak_device);
  return {peaks.begin(), peaks.end()};
}

/// The first, one in the middle and the last.
std::vector<Bytes> some_of(const std::vector<Bytes>& peaks) {
  return {peaks.front(), peaks[peaks.size() / 2], peaks.back()};
}

BudgetWishes hbm_limit(Bytes limit) {
  return {.hbm_limit = limit, .fraction = {}, .host_limit = {}};
}

TEST_CASE("the exact search finds what going through every policy finds, in any budget") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    std::size_t compared = 0;
    for (const Bytes peak : some_of(peaks_of(evaluate_all(named.example.evaluator())))) {
      CAPTURE(peak.value());
      const Evaluator evaluator = named.example.evaluator(hbm_limit(peak));
      const auto cases = evaluate_all(evaluator);  // XLA's order depends on the budget
      REQUIRE(cases.size() >= 4);
      const auto fitting = that_fit(cases);
      if (fitting.empty()) continue;
      ++compared;
      const PolicyCase& fastest = std::ranges::min(fitting, is_better);
      const PlanResult plan = plan_of(evaluator);
      CHECK(plan.proven);
      CHECK(plan.fits);
      CHECK(plan.policies == static_cast<double>(cases.size()));
      CHECK(plan.simulated <= cases.size());
      CHECK(plan.best.fit.fits);
      CHECK(plan.best.step == fastest.step);
      CHECK(plan.best.peak_device == fastest.peak_device);
      CHECK(plan.best.host == fastest.host);
      CHECK(plan.lower_bound == fastest.step);
      CHECK(plan.gap == 0);
      // The case is that of its policy, and runners-up fit and follow.
      CHECK(case_of(evaluator, plan.best.policy).step == plan.best.step);
      CHECK(plan.alternatives.size() <= std::min<std::size_t>(3, fitting.size() - 1));
      Seconds before = plan.best.step;
      for (const PolicyCase& next : plan.alternatives) {
        CHECK(next.fit.fits);
        CHECK(next.step >= before);
        CHECK(next.policy != plan.best.policy);
        before = next.step;
      }
    }
    CHECK(compared > 0);
  }
}

TEST_CASE("no policy needs less than its bound, nor than that of any part of it") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    PolicyBounds bounds(evaluator);
    const auto& handles = evaluator.handles();
    OpenPolicy all;
    for (const Handle& handle : handles) all.emplace_back(choices_of(handle));
    CHECK(bounds.of(all).step > Seconds(0));
    for (const PolicyCase& c : evaluate_all(evaluator)) {
      if (c.policy == compiled_policy(handles)) continue;
      // Each handle decided, open, or open but for one of the choices that it has not become.
      std::size_t ways = 1;
      for (std::size_t k = 0; k < handles.size(); ++k) ways *= 4;
      for (std::size_t way = 0; way < ways; ++way) {
        OpenPolicy open;
        std::size_t digits = way;
        for (std::size_t k = 0; k < handles.size(); ++k, digits /= 4) {
          OpenChoices choices = digits % 4 == 0 ? OpenChoices({c.policy[k]}) : all[k];
          const Choice other = digits % 4 == 2 ? Choice::kRecompute : Choice::kOffload;
          if (digits % 4 > 1 && c.policy[k] != other) choices = choices.without(other);
          open.push_back(choices);
        }
        const PolicyBound bound = bounds.of(open);
        REQUIRE(bound.device <= c.peak_device);
        REQUIRE(bound.host <= c.host);
        REQUIRE(bound.device + bound.host + bound.either <= c.peak_device + c.host);
        REQUIRE(bound.step <= c.step);
      }
    }
  }
}

TEST_CASE("a space that is too large is searched by improving, and says what that is worth") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    for (const Bytes peak : some_of(peaks_of(evaluate_all(named.example.evaluator())))) {
      CAPTURE(peak.value());
      const Evaluator evaluator = named.example.evaluator(hbm_limit(peak));
      const auto fitting = that_fit(evaluate_all(evaluator));
      if (fitting.empty()) continue;
      const PlanResult plan = plan_of(evaluator, {.threads = 2, .most_simulated = 1});
      CHECK(plan.fits);
      for (const PolicyCase& c : fitting) CHECK(plan.lower_bound <= c.step);
      CHECK(plan.gap == doctest::Approx(1 - ratio(plan.lower_bound, plan.best.step)));
      // No single move improves it.
      for (const PolicyCase& c : fitting) {
        std::size_t moved = 0;
        for (std::size_t k = 0; k < c.policy.size(); ++k)
          moved += c.policy[k] != plan.best.policy[k];
        if (moved <= 1) CHECK(plan.best.step <= c.step);
      }
      for (const NamedCase& baseline : plan.baselines)
        if (baseline.result.fit.fits) CHECK(plan.best.step <= baseline.result.step);
    }
  }
}

TEST_CASE("when nothing fits, the answer is no, and the closest") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const auto any_budget = evaluate_all(named.example.evaluator());
    const std::vector<Bytes> peaks = peaks_of(any_budget);
    // The least host memory that the least HBM goes with.
    const PolicyCase smallest =
        std::ranges::min(any_budget, [](const PolicyCase& a, const PolicyCase& b) {
          return std::pair(a.peak_device, a.host) < std::pair(b.peak_device, b.host);
        });
    // By little of the HBM, by nearly all of it, and by both: what needs little of one needs much
    // of the other.
    const BudgetWishes wishes[] = {
        hbm_limit(peaks.front() / 2),
        hbm_limit(Bytes(1)),
        {.hbm_limit = peaks.front() / 2, .fraction = {}, .host_limit = smallest.host - Bytes(1)},
    };
    for (const BudgetWishes& wish : wishes) {
      const Evaluator evaluator = named.example.evaluator(wish);
      const auto cases = evaluate_all(evaluator);
      REQUIRE(that_fit(cases).empty());
      const PlanResult plan = plan_of(evaluator);
      CHECK_FALSE(plan.fits);
      CHECK_FALSE(plan.best.fit.fits);
      for (const PolicyCase& c : cases) CHECK(missed(plan.best) <= missed(c));
      for (const PolicyCase& next : plan.alternatives) CHECK_FALSE(next.fit.fits);
    }
  }
}

TEST_CASE("the result does not depend on the number of threads") {
  const Example example = read_example_with("keep", {"query_proj", "key_proj", "mlpwi_0"});
  const Evaluator evaluator = example.evaluator();
  const PlanResult one = plan_of(evaluator, {.threads = 1});
  const PlanResult many = plan_of(evaluator, {.threads = 7});
  const auto policies = [](const PlanResult& plan) {
    std::vector<Policy> list = {plan.best.policy};
    for (const PolicyCase& c : plan.alternatives) list.push_back(c.policy);
    for (const PolicyCase& c : plan.pareto) list.push_back(c.policy);
    return list;
  };
  CHECK(policies(one) == policies(many));
  CHECK(one.best.step == many.best.step);
  CHECK(one.simulated == many.simulated);
}

TEST_CASE("the Pareto list holds cases that no other beats in both HBM and time") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    const PlanResult plan = plan_of(evaluator);
    REQUIRE_FALSE(plan.pareto.empty());
    for (std::size_t k = 0; k < plan.pareto.size(); ++k) {
      const PolicyCase& at = plan.pareto[k];
      CHECK(case_of(evaluator, at.policy).step == at.step);
      if (k == 0) continue;
      CHECK(at.peak_device > plan.pareto[k - 1].peak_device);
      CHECK(at.step < plan.pareto[k - 1].step);
    }
    // What the table shows does not beat the list either.
    std::vector<PolicyCase> shown = plan.alternatives;
    shown.push_back(plan.best);
    for (const PolicyCase& c : shown)
      CHECK(std::ranges::any_of(plan.pareto, [&c](const PolicyCase& at) {
        return at.peak_device <= c.peak_device && at.step <= c.step;
      }));
  }
}

TEST_CASE("baselines are simulated like every policy") {
  const Example example = read_example_with("offload_qkv", {"query_proj", "key_proj"});
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_of(evaluator);
  std::vector<std::string> names;
  for (const NamedCase& baseline : plan.baselines) {
    names.push_back(baseline.name);
    const PolicyCase again = case_of(evaluator, baseline.result.policy);
    CHECK(baseline.result.step == again.step);
    CHECK(baseline.result.peak_device == again.peak_device);
  }
  names.resize(7);
  CHECK(names == std::vector<std::string>{"as compiled", "keep all", "offload all", "recompute all",
                                          "offload what hides, recompute the rest",
                                          "offload what hides alone", "MaxText's chain"});
  CHECK(plan.baselines[0].result.policy == compiled_policy(evaluator.handles()));
  CHECK(plan.baselines[2].result.host >= plan.baselines[0].result.host);
  CHECK(plan.baselines[3].result.dot_flops > plan.baselines[1].result.dot_flops);
}

TEST_CASE("the policy of the dump is the dump") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    const MemoryAssignment memory = assign_memory(named.example.program, named.example.schedule);
    const SimResult dump =
        value_or_fail(simulate(named.example.program, named.example.schedule, memory,
                               named.example.profile, named.example.topology));
    const PolicyCase compiled =
        value_or_fail(evaluator.evaluate(compiled_policy(evaluator.handles())));
    CHECK(compiled.step == dump.step);
    CHECK(compiled.peak_device == dump.memory.total_device);
    CHECK(compiled.host == host_bytes(dump.memory));
    CHECK(compiled.device_to_host == dump.traffic.device_to_host);
    CHECK(compiled.host_to_device == dump.traffic.host_to_device);
    CHECK(compiled.dot_flops == dump.flops.dot_per_step.value());
  }
}

TEST_CASE("what a handle offloads crosses the link once each way") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    const auto& handles = evaluator.handles();
    const PolicyCase none =
        value_or_fail(evaluator.evaluate(Policy(handles.size(), Choice::kKeep)));
    for (const PolicyCase& c : evaluate_all(evaluator)) {
      const bool recomputes = std::ranges::find(c.policy, Choice::kRecompute) != c.policy.end();
      if (recomputes) continue;
      Bytes offloaded(0);
      bool streams_parameters = false;  // they cross once in each loop, and so do gradients
      for (std::size_t k = 0; k < handles.size(); ++k) {
        if (c.policy[k] != Choice::kOffload) continue;
        offloaded += handles[k].bytes;
        streams_parameters |= handles[k].state == StateClass::kParameters;
      }
      if (streams_parameters) {
        CHECK(c.device_to_host > offloaded);
        CHECK(c.host_to_device > c.device_to_host);
        CHECK(c.host - none.host >= offloaded);
        continue;
      }
      // Residuals without a name stay where they are.
      CHECK(c.device_to_host - none.device_to_host == offloaded);
      CHECK(c.host_to_device - none.host_to_device == offloaded);
      CHECK(c.host - none.host == offloaded);
    }
  }
}

TEST_CASE("the check of plans has nothing against any policy") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    for (const PolicyCase& c : evaluate_all(evaluator)) {
      Budget exact = named.example.budget();
      exact.host = c.host;
      const Program planned = value_or_fail(evaluator.rewrite(c.policy, evaluator.default_order()));
      exact.pool = sum_totals(assign_memory(planned, text_schedule(planned).value())).total_device;
      CHECK(check_plan(planned, exact) == std::vector<std::string>{});
    }
  }
}

std::string signed_text(const std::string& text, bool negative) {
  return (negative ? "-" : "+") + text;
}

TEST_CASE("a reason is what the other choice would have given") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    const PlanResult plan = plan_of(evaluator);
    REQUIRE(plan.reasons.size() == evaluator.handles().size());
    for (std::size_t k = 0; k < plan.reasons.size(); ++k) {
      const Reason& reason = plan.reasons[k];
      CAPTURE(reason.text());
      CHECK(reason.handle == evaluator.handles()[k].name);
      CHECK(reason.choice == plan.best.policy[k]);
      std::size_t line = 0;
      for (const Choice choice : choices_of(evaluator.handles()[k])) {
        if (choice == reason.choice) continue;
        Policy other = plan.best.policy;
        other[k] = choice;
        const PolicyCase c = case_of(evaluator, other);
        const Seconds slower = c.step - plan.best.step;
        const Bytes more = c.peak_device - plan.best.peak_device;
        const Bytes host = c.host - plan.best.host;
        std::string expected = choice == Choice::kKeep      ? "keeping it: "
                               : choice == Choice::kOffload ? "offloading it: "
                                                            : "recomputing it: ";
        expected +=
            signed_text(format_seconds(Seconds(std::abs(slower.value()))), slower < Seconds(0)) +
            " a step, ";
        expected +=
            signed_text(format_bytes(Bytes(std::abs(more.value()))), more < Bytes(0)) + " of HBM, ";
        expected += signed_text(format_bytes(Bytes(std::abs(host.value()))), host < Bytes(0)) +
                    " on the host";
        if (plan.fits && !c.fit.fits) expected += ", misses ";
        if (plan.fits && c.fit.over_hbm > Bytes(0))
          expected += "HBM by " + format_bytes(c.fit.over_hbm);
        if (plan.fits && c.fit.over_host > Bytes(0))
          expected += (c.fit.over_hbm > Bytes(0) ? ", host by " : "host by ") +
                      format_bytes(c.fit.over_host);
        while (line < reason.lines.size() && reason.lines[line].starts_with("cannot")) ++line;
        REQUIRE(line < reason.lines.size());
        CHECK(reason.lines[line++] == expected);
      }
      CHECK(line == reason.lines.size());
    }
  }
}

TEST_CASE("what cannot be moved stays, and says why") {
  // Stack a is also read outside the loops.
  std::string text = ToyScan{}.text();
  const std::string end = "ROOT %end";
  text.insert(text.find(end),
              "%peeled = f32[1,64]{1,0} dynamic-slice(%fw2, %start, %start), "
              "dynamic_slice_sizes={1,64}\n  ");
  const Example example = toy_example(text);
  const Evaluator evaluator = example.evaluator(hbm_limit(Bytes(1 << 20)));
  REQUIRE(evaluator.handles().size() == 2);
  REQUIRE(evaluator.handles()[0].fixed_because != "");
  REQUIRE(evaluator.handles()[1].fixed_because == "");
  const PlanResult plan = plan_of(evaluator);
  CHECK(plan.simulated == 2);
  CHECK(plan.best.policy[0] == Choice::kKeep);
  CHECK(plan.reasons[0].choice == Choice::kKeep);
  CHECK(plan.reasons[0].text() == "stays as compiled: " + evaluator.handles()[0].fixed_because);
  for (const NamedCase& baseline : plan.baselines)
    CHECK(baseline.result.policy[0] == Choice::kKeep);
}

TEST_CASE("nothing is offloaded by a build that reloads the wrong layers") {
  // Compiled with stack a on the host; its copies back walk forward, the loop goes backward.
  const Example wrong = toy_example(testing::annotated(testing::walk(0, 256)));
  const Evaluator evaluator = wrong.evaluator(hbm_limit(Bytes(1 << 20)));
  const PlanResult plan = plan_of(evaluator);
  CHECK(plan.best.policy == Policy{Choice::kKeep, Choice::kKeep});
  CHECK(plan.reasons[0].text().starts_with("must not be offloaded: this build of XLA reloads"));
  CHECK(plan.reasons[1].text().starts_with("must not be offloaded"));
  for (const PolicyCase& other : plan.alternatives) CHECK(other.policy[0] == Choice::kKeep);
  for (const PolicyCase& other : plan.pareto) CHECK(other.policy[0] == Choice::kKeep);
  // To compare with, the compiled policy is still there; "offload all" offloads nothing.
  for (const NamedCase& baseline : plan.baselines) {
    CAPTURE(std::string(baseline.name));
    const bool compiled = std::string(baseline.name) == "as compiled";
    CHECK((baseline.result.policy[0] == Choice::kOffload) == compiled);
  }
  // The same with a right annotation may be offloaded.
  const Example right = toy_example(testing::annotated(testing::walk(768, -256)));
  const Evaluator may_offload = right.evaluator(hbm_limit(Bytes(1 << 20)));
  for (const Handle& handle : may_offload.handles()) CHECK(handle.device_only_because == "");
}

TEST_CASE("a program that saves nothing has one policy") {
  const Example example = toy_example("ENTRY %main {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n");
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_of(evaluator);
  CHECK(plan.handles.empty());
  CHECK(plan.simulated == 1);
  CHECK(plan.fits);
  CHECK(plan.best.peak_device == Bytes(32));
  CHECK(plan.best.step == Seconds(0));
  CHECK(plan.gap == 0);
  CHECK(plan.reasons.empty());
  CHECK_FALSE(plan_of(example.evaluator(hbm_limit(Bytes(31)))).fits);
}

TEST_CASE("reasons say where keeping a value takes less HBM and more time") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator({.hbm_limit = Bytes(std::int64_t{25} << 30)});
  const PlanResult plan = value_or_fail(make_plan(evaluator, {.most_simulated = 40}));
  CaseBook cases(evaluator, plan.order, 2);
  for (std::size_t k = 0; k < plan.handles.size(); ++k) {
    CAPTURE(plan.handles[k].name);
    Policy kept = plan.best.policy;
    kept[k] = Choice::kKeep;
    REQUIRE(!cases.simulate({kept}));
    const PolicyCase& other = cases.at(kept);
    CHECK(plan.reasons[k].keeps_in_less ==
          (other.peak_device < plan.best.peak_device && other.step > plan.best.step));
  }
}

}  // namespace
}  // namespace spillway
