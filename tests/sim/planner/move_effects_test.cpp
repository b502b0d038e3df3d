// Bytes moved against bytes saved at the peak.
#include "sim/planner/move_effects.h"

#include <doctest/doctest.h>

#include "model/cost/host_rates.h"
#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::read_example;
using testing::value_or_fail;

TEST_CASE("each is the difference of two simulated policies, and comes in the order of load") {
  const testing::Example example = read_example("keep", "h100");
  const Evaluator evaluator = example.evaluator();
  const Policy compiled = compiled_policy(evaluator.handles());
  const auto effects =
      value_or_fail(move_effects(evaluator, compiled, evaluator.default_order(), 2));
  const HostRates rates = host_rates(example.profile, example.topology);
  REQUIRE(!effects.empty());
  for (std::size_t k = 0; k < effects.size(); ++k) {
    const MoveEffect& effect = effects[k];
    const Handle& handle = evaluator.handles()[effect.handle];
    CAPTURE(handle.name);
    Policy there = compiled;
    there[effect.handle] = Choice::kOffload;
    const PolicyCase kept = value_or_fail(evaluator.evaluate(compiled));
    const PolicyCase offloaded =
        value_or_fail(evaluator.evaluate(there, evaluator.default_order()));
    CHECK(effect.saved_at_peak == kept.peak_device - offloaded.peak_device);
    CHECK(effect.added == offloaded.step - kept.step);
    CHECK(effect.host == offloaded.host - kept.host);
    CHECK(effect.link.value() == doctest::Approx((effect.device_to_host / rates.device_to_host +
                                                  effect.host_to_device / rates.host_to_device)
                                                     .value()));
    if (k > 0) CHECK(effects[k - 1].load() <= effect.load());
    if (is_name(handle)) {
      CHECK(effect.device_to_host == handle.bytes);
      CHECK(effect.host_to_device == handle.bytes);
    }
  }
}

TEST_CASE("what moves need not be what is saved") {
  const testing::Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  const auto effects = value_or_fail(
      move_effects(evaluator, compiled_policy(evaluator.handles()), evaluator.default_order(), 2));
  for (const MoveEffect& effect : effects) {
    const Handle& handle = evaluator.handles()[effect.handle];
    CAPTURE(handle.name);
    if (is_name(handle)) {
      // Stacks are live at the peak: all but what is in flight.
      CHECK(effect.saved_at_peak > Bytes(handle.bytes.value() * 9 / 10));
    } else if (handle.state == StateClass::kOptimizer) {
      // Fetched before it is needed, it lies in HBM again when most is live.
      CHECK(effect.saved_at_peak < Bytes(handle.bytes.value() * 9 / 10));
      CHECK(effect.moved() >= handle.bytes * 2);
    }
  }
}

}  // namespace
}  // namespace spillway
