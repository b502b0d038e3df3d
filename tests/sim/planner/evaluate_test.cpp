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
  struct Row {
    const char* name;
    ScheduleSettings settings;
    double step, exposed;
  };
  // Kernels of two seconds each, four of them; 32 B at 2 B/s and a second of latency are 17.
  const Row rows[] = {
      {"off: one after the other", off(), 8 + 17, 17},
      {"T-shirt sizes", hiding(), 2 + 17, 17 - 6},
      {"analytical: a launch is nothing to hide", hiding(BelievedCosts::kAnalytical), 2 + 17, 11},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const PolicyCase result = value_or_fail(evaluator.evaluate({}, row.settings));
    CHECK(result.step.value() == doctest::Approx(row.step));
    CHECK(result.exposed_copies.value() == doctest::Approx(row.exposed));
    CHECK(result.device_to_host == Bytes(32));
    CHECK(result.host == Bytes(32));
  }
  // What is being copied may not be written over: hiding takes the room of one array more.
  CHECK(value_or_fail(evaluator.evaluate({}, hiding())).peak_device -
            value_or_fail(evaluator.evaluate({}, off())).peak_device ==
        Bytes(32));
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
      {"a profile", compiled, hiding(BelievedCosts::kProfile),
       "an order made by a profile is not modelled"},
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
  // XLA made it with latency hiding by T-shirt sizes.
  CHECK(ratio(on.step, given.step) == doctest::Approx(1).epsilon(0.01));
  CHECK(ratio(not_hidden.step, on.step) > 1.1);
  CHECK(not_hidden.exposed_copies > on.exposed_copies);
  CHECK(not_hidden.peak_device < on.peak_device);
  // A loop carries a slice more of what is fetched ahead.
  CHECK(ahead.peak_device >= on.peak_device);
  for (const PolicyCase* each : {&on, &not_hidden, &ahead}) {
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
