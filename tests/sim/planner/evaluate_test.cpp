// One policy under settings of XLA's scheduler: what the order costs or hides.
#include "sim/planner/evaluate.h"

#include <doctest/doctest.h>

#include "model/plan/policy.h"
#include "tests/sim/planner/example.h"
#include "tests/sim/planner/toy_copy.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::Example;
using testing::kCopyBehindKernel;
using testing::read_example;
using testing::toy_example;
using testing::value_or_fail;

ScheduleSettings off() { return {}; }
ScheduleSettings hiding(BelievedCosts costs = BelievedCosts::kTShirt) {
  return {.scheduler = {.hides_latencies = true, .costs = costs, .rest = costs}};
}

TEST_CASE("hidden, a copy takes the time of the longer; off, of both") {
  const Example toy = toy_example(std::string(kCopyBehindKernel));
  const Evaluator evaluator = toy.evaluator();
  constexpr double kCopy = 17;  // 32 B at 2 B/s, and a second of latency
  const PolicyCase one_by_one = value_or_fail(evaluator.evaluate({}, off()));
  const double kernel = (one_by_one.step.value() - kCopy) / 4;
  CHECK(kernel == doctest::Approx(2).epsilon(0.02));
  CHECK(one_by_one.exposed_copies.value() == doctest::Approx(kCopy));
  for (const BelievedCosts costs : {BelievedCosts::kTShirt, BelievedCosts::kAnalytical}) {
    CAPTURE(name_of(costs));
    const PolicyCase hidden = value_or_fail(evaluator.evaluate({}, hiding(costs)));
    CHECK(hidden.step.value() == doctest::Approx(kernel + kCopy));
    // Three kernels run beside it, a little slower for the HBM that the copy reads.
    CHECK(hidden.exposed_copies.value() < kCopy - 3 * kernel);
    CHECK(hidden.exposed_copies.value() > kCopy - 3.3 * kernel);
    CHECK(hidden.device_to_host == Bytes(32));
    CHECK(hidden.host == one_by_one.host);
    // What is being copied may not be written over.
    CHECK(hidden.peak_device > one_by_one.peak_device);
  }
}

TEST_CASE("what cannot be ordered is refused in words") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  const Policy compiled = compiled_policy(evaluator.handles());
  Policy other = compiled;
  other[0] = Choice::kOffload;
  ScheduleSettings pipelined = hiding(), no_copies = hiding(), no_collectives = hiding();
  pipelined.pipelines_host_copies = true;
  no_copies.async_computes = 0;
  no_collectives.collectives = -1;
  struct Row {
    const char* name;
    Policy policy;
    ScheduleSettings settings;
    const char* refused;  ///< empty: not at all
  };
  const Row rows[] = {
      {"a profile", compiled, hiding(BelievedCosts::kProfile), ""},
      {"a profile that nobody reads",
       compiled,
       {.scheduler = {.hides_latencies = false, .costs = BelievedCosts::kProfile}},
       ""},
      {"copies that XLA did not make", other, pipelined,
       "pipelining is simulated for copies that XLA made only"},
      {"its own", compiled, pipelined, ""},
      {"no copy may start", compiled, no_copies, "XLA cannot order with a limit below 1"},
      {"nor a collective", compiled, no_collectives, "XLA cannot order with a limit below 1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Result<PolicyCase> result = evaluator.evaluate(row.policy, row.settings);
    CHECK((result.ok() ? "" : result.error().text) == row.refused);
  }
}

TEST_CASE("a scanned step that offloads, under flags") {
  const Example example = read_example("offload_all");
  const Evaluator evaluator = example.evaluator();
  const Policy policy = compiled_policy(evaluator.handles());
  const auto under = [&](const ScheduleSettings& settings) {
    return value_or_fail(evaluator.evaluate(policy, settings));
  };
  const PolicyCase given = value_or_fail(evaluator.evaluate(policy));
  const PolicyCase on = under(hiding()), not_hidden = under(off());
  ScheduleSettings pipelined = hiding();
  pipelined.pipelines_host_copies = true;
  const PolicyCase ahead = under(pipelined);
  const PolicyCase by_profile = under(hiding(BelievedCosts::kProfile));
  // XLA made it with latency hiding by T-shirt sizes.
  CHECK(ratio(on.step, given.step) == doctest::Approx(1).epsilon(0.01));
  CHECK(ratio(not_hidden.step, on.step) > 1.1);
  CHECK(not_hidden.exposed_copies > on.exposed_copies);
  CHECK(not_hidden.peak_device < on.peak_device);
  // A loop carries a slice more of what is fetched ahead.
  CHECK(ahead.peak_device >= on.peak_device);
  // Who knows what things take hides more of it.
  CHECK(by_profile.step < on.step);
  for (const PolicyCase* each : {&on, &not_hidden, &ahead, &by_profile}) {
    CHECK(each->device_to_host == given.device_to_host);
    CHECK(each->host_to_device == given.host_to_device);
    CHECK(each->dot_flops == given.dot_flops);
  }
}

TEST_CASE("memory fencing frees HBM of layers that are not scanned") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const auto profile = value_or_fail(read_profile(testing::source_path("hw_profiles/gb200.yaml")));
  const Example example = testing::make_example(
      value_or_fail(read_program((*corpus / "l8b4_unr_off").string())), {}, profile);
  const Evaluator evaluator = example.evaluator();
  const Policy policy = compiled_policy(evaluator.handles());
  ScheduleSettings fenced = hiding();
  fenced.fencing_threshold_bytes = kFencedFrom.value();
  const PolicyCase plain = value_or_fail(evaluator.evaluate(policy, hiding()));
  const PolicyCase with = value_or_fail(evaluator.evaluate(policy, fenced));
  CHECK(ratio(with.peak_device, plain.peak_device) < 0.95);
  CHECK(with.device_to_host == plain.device_to_host);
}

}  // namespace
}  // namespace spillway
