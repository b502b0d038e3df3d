// The search against every policy, one by one, on the dumps of examples/ and on toys.
#include "sim/planner/planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "model/base/format.h"
#include "model/plan/check_plan.h"
#include "tests/model/diagnostics/annotated_scan.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::Example;
using testing::Fetch;
using testing::read_example;
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
  for (const char* dump : {"keep", "offload_qkv"}) found.push_back({dump, read_example(dump)});
  found.push_back({"offload_all on pcie", read_example("offload_all", "h100")});
  found.push_back({"a toy scan", toy_example(scan_text())});
  found.push_back({"a toy scan and branches", toy_example(scan_and_branches_text())});
  return found;
}

PlanResult plan_of(const Evaluator& evaluator, const PlanOptions& options = {}) {
  return value_or_fail(make_plan(evaluator, options));
}

/// Every policy of the movable handles, the others as compiled.
std::vector<Policy> all_policies(const std::vector<Handle>& handles) {
  std::vector<Policy> policies = {{}};
  for (const Handle& handle : handles) {
    std::vector<Policy> longer;
    for (const Policy& policy : policies)
      for (const Choice choice : {Choice::kKeep, Choice::kOffload}) {
        if (!handle.fixed_because.empty() && choice != handle.as_compiled) continue;
        longer.push_back(policy);
        longer.back().push_back(choice);
      }
    policies = std::move(longer);
  }
  return policies;
}

std::vector<PolicyCase> evaluate_all(const Evaluator& evaluator) {
  std::vector<PolicyCase> cases;
  for (const Policy& policy : all_policies(evaluator.handles()))
    cases.push_back(value_or_fail(evaluator.evaluate(policy)));
  return cases;
}

/// The same cases under another budget: neither time nor memory depends on it.
std::vector<PolicyCase> that_fit(const std::vector<PolicyCase>& cases, const Budget& budget) {
  std::vector<PolicyCase> fitting;
  for (const PolicyCase& c : cases)
    if (c.peak_device <= budget.pool && c.host <= budget.host) fitting.push_back(c);
  return fitting;
}

/// The n different values of HBM that policies need, ascending.
std::vector<Bytes> peaks_of(const std::vector<PolicyCase>& cases) {
  std::set<Bytes> peaks;
  for (const PolicyCase& c : cases) peaks.insert(c.peak_device);
  return {peaks.begin(), peaks.end()};
}

/// At most five of them, the first and the last included.
std::vector<Bytes> some_of(const std::vector<Bytes>& peaks) {
  if (peaks.size() <= 5) return peaks;
  std::vector<Bytes> some;
  for (std::size_t k = 0; k < 5; ++k) some.push_back(peaks[k * (peaks.size() - 1) / 4]);
  return some;
}

BudgetWishes hbm_limit(Bytes limit) {
  return {.hbm_limit = limit, .fraction = {}, .host_limit = {}};
}

TEST_CASE("the exact search finds what going through every policy finds, in any budget") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const auto cases = evaluate_all(named.example.evaluator());
    REQUIRE(cases.size() >= 4);
    const std::vector<Bytes> peaks = peaks_of(cases);
    for (const Bytes peak : some_of(peaks)) {
      CAPTURE(peak.value());
      const Evaluator evaluator = named.example.evaluator(hbm_limit(peak));
      const auto fitting = that_fit(cases, named.example.budget(hbm_limit(peak)));
      REQUIRE_FALSE(fitting.empty());
      const PolicyCase& fastest = *std::ranges::min_element(fitting, [](const PolicyCase& a,
                                                                        const PolicyCase& b) {
        return std::tie(a.step, a.peak_device, a.host) < std::tie(b.step, b.peak_device, b.host);
      });
      const PlanResult plan = plan_of(evaluator);
      CHECK(plan.proven);
      CHECK(plan.fits);
      CHECK(plan.simulated == cases.size());
      CHECK(plan.best.fit.fits);
      CHECK(plan.best.step == fastest.step);
      CHECK(plan.best.peak_device == fastest.peak_device);
      CHECK(plan.best.host == fastest.host);
      CHECK(plan.lower_bound == fastest.step);
      CHECK(plan.gap == 0);
      // The case is that of its policy, and runners-up fit and follow.
      CHECK(value_or_fail(evaluator.evaluate(plan.best.policy)).step == plan.best.step);
      CHECK(plan.alternatives.size() == std::min<std::size_t>(3, fitting.size() - 1));
      Seconds before = plan.best.step;
      for (const PolicyCase& next : plan.alternatives) {
        CHECK(next.fit.fits);
        CHECK(next.step >= before);
        CHECK(next.policy != plan.best.policy);
        before = next.step;
      }
    }
  }
}

TEST_CASE("a tighter budget never makes a plan faster") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const std::vector<Bytes> peaks = peaks_of(evaluate_all(named.example.evaluator()));
    std::vector<Bytes> limits = some_of(peaks);
    std::ranges::reverse(limits);
    limits.push_back(peaks.front() - Bytes(1));
    Seconds before(0);
    for (const Bytes limit : limits) {
      CAPTURE(limit.value());
      const PlanResult plan = plan_of(named.example.evaluator(hbm_limit(limit)));
      CHECK(plan.fits == (limit >= peaks.front()));
      if (!plan.fits) continue;
      CHECK(plan.best.step >= before);
      before = plan.best.step;
    }
  }
}

TEST_CASE("no policy is faster than the lower bound") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    const Seconds bound = evaluator.lower_bound();
    CHECK(bound > Seconds(0));
    for (const PolicyCase& c : evaluate_all(evaluator)) CHECK(bound <= c.step);
  }
}

TEST_CASE("a space that is too large is searched by improving, and says what that is worth") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const auto cases = evaluate_all(named.example.evaluator());
    const std::vector<Bytes> peaks = peaks_of(cases);
    for (const Bytes peak : {peaks.front(), peaks[peaks.size() / 2], peaks.back()}) {
      CAPTURE(peak.value());
      const Evaluator evaluator = named.example.evaluator(hbm_limit(peak));
      const auto fitting = that_fit(cases, named.example.budget(hbm_limit(peak)));
      const PlanResult plan = plan_of(evaluator, {.threads = 2, .exhaustive_limit = 1});
      CHECK_FALSE(plan.proven);
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
    const auto cases = evaluate_all(named.example.evaluator());
    const std::vector<Bytes> peaks = peaks_of(cases);
    // The least host memory that the least HBM goes with.
    const PolicyCase smallest =
        std::ranges::min(cases, [](const PolicyCase& a, const PolicyCase& b) {
          return std::pair(a.peak_device, a.host) < std::pair(b.peak_device, b.host);
        });
    // By one byte of HBM, by nearly all of it, and by both: what needs little of one needs much of
    // the other.
    const BudgetWishes wishes[] = {
        hbm_limit(peaks.front() - Bytes(1)),
        hbm_limit(Bytes(1)),
        {.hbm_limit = peaks.front(), .fraction = {}, .host_limit = smallest.host - Bytes(1)},
    };
    for (const BudgetWishes& wish : wishes) {
      const Evaluator evaluator = named.example.evaluator(wish);
      const Budget budget = named.example.budget(wish);
      REQUIRE(that_fit(cases, budget).empty());
      const PlanResult plan = plan_of(evaluator);
      CHECK_FALSE(plan.fits);
      CHECK_FALSE(plan.best.fit.fits);
      const auto misses_by = [&](const PolicyCase& c) {
        return std::max(c.peak_device - budget.pool, Bytes(0)) +
               std::max(c.host - budget.host, Bytes(0));
      };
      for (const PolicyCase& c : cases) CHECK(misses_by(plan.best) <= misses_by(c));
      for (const PolicyCase& next : plan.alternatives) CHECK_FALSE(next.fit.fits);
    }
  }
}

TEST_CASE("the result does not depend on the number of threads") {
  const Example example = read_example("keep");
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
}

TEST_CASE("the Pareto list holds the cases that no other beats in both HBM and time") {
  for (const Named& named : examples()) {
    CAPTURE(named.name);
    const Evaluator evaluator = named.example.evaluator();
    const auto cases = evaluate_all(evaluator);
    const PlanResult plan = plan_of(evaluator);
    const auto beats = [](const PolicyCase& a, const PolicyCase& b) {
      return a.peak_device <= b.peak_device && a.step <= b.step &&
             (a.peak_device < b.peak_device || a.step < b.step);
    };
    const auto beaten = [&](const PolicyCase& b) {
      return std::ranges::any_of(cases, [&](const PolicyCase& a) { return beats(a, b); });
    };
    std::set<std::pair<Bytes, Seconds>> expected, found;
    for (const PolicyCase& c : cases)
      if (!beaten(c)) expected.emplace(c.peak_device, c.step);
    for (const PolicyCase& c : plan.pareto) found.emplace(c.peak_device, c.step);
    CHECK(found == expected);
    CHECK(found.size() == plan.pareto.size());
  }
}

TEST_CASE("baselines are simulated like every policy") {
  const Example example = read_example("offload_qkv");
  const Evaluator evaluator = example.evaluator();
  const PlanResult plan = plan_of(evaluator);
  std::vector<std::string> names;
  for (const NamedCase& baseline : plan.baselines) {
    names.push_back(baseline.name);
    const PolicyCase again = value_or_fail(evaluator.evaluate(baseline.result.policy));
    CHECK(baseline.result.step == again.step);
    CHECK(baseline.result.peak_device == again.peak_device);
  }
  CHECK(names == std::vector<std::string>{"as compiled", "keep all", "offload all"});
  CHECK(plan.baselines[0].result.policy == compiled_policy(evaluator.handles()));
  CHECK(plan.baselines[1].result.host_to_device == Bytes(0));
  CHECK(plan.baselines[2].result.host > plan.baselines[0].result.host);
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
    CHECK(none.device_to_host == Bytes(0));
    for (const PolicyCase& c : evaluate_all(evaluator)) {
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
      CHECK(c.device_to_host == offloaded);
      CHECK(c.host_to_device == offloaded);
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
      exact.pool = c.peak_device;
      exact.host = c.host;
      CHECK(check_plan(evaluator.rewrite(c.policy), exact) == std::vector<std::string>{});
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
      CAPTURE(reason.text);
      CHECK(reason.handle == evaluator.handles()[k].name);
      CHECK(reason.choice == plan.best.policy[k]);
      Policy other = plan.best.policy;
      const bool kept = other[k] == Choice::kKeep;
      other[k] = kept ? Choice::kOffload : Choice::kKeep;
      const PolicyCase c = value_or_fail(evaluator.evaluate(other));
      const Seconds slower = c.step - plan.best.step;
      const Bytes more = c.peak_device - plan.best.peak_device;
      const Bytes host = c.host - plan.best.host;
      std::string expected = kept ? "offloading it: " : "keeping it: ";
      expected +=
          signed_text(format_seconds(Seconds(std::abs(slower.value()))), slower < Seconds(0)) +
          " a step, ";
      expected +=
          signed_text(format_bytes(Bytes(std::abs(more.value()))), more < Bytes(0)) + " of HBM, ";
      expected += signed_text(format_bytes(Bytes(std::abs(host.value()))), host < Bytes(0)) +
                  " on the host";
      if (plan.fits && c.fit.over_hbm > Bytes(0))
        expected += "; misses the budget by " + format_bytes(c.fit.over_hbm);
      if (plan.fits && c.fit.over_host > Bytes(0))
        expected += "; " + format_bytes(c.fit.over_host) + " too much for the host";
      CHECK(reason.text == expected);
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
  CHECK(plan.reasons[0].text == "stays as compiled: " + evaluator.handles()[0].fixed_because);
  for (const NamedCase& baseline : plan.baselines)
    CHECK(baseline.result.policy[0] == Choice::kKeep);
}

TEST_CASE("nothing is offloaded by a build that reloads the wrong layers") {
  // Compiled with stack a on the host; its copies back walk forward, the loop goes backward.
  const Example wrong = toy_example(testing::annotated(testing::walk(0, 256)));
  const Evaluator evaluator = wrong.evaluator(hbm_limit(Bytes(1 << 20)));
  const PlanResult plan = plan_of(evaluator);
  CHECK(plan.best.policy == Policy{Choice::kKeep, Choice::kKeep});
  CHECK(plan.reasons[0].text.starts_with("must not be offloaded: this build of XLA reloads"));
  CHECK(plan.reasons[1].text.starts_with("must not be offloaded"));
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

}  // namespace
}  // namespace spillway
