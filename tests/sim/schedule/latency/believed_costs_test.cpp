// What XLA's scheduler believed that every instruction of the corpus takes, against ours. Runs only
// where the corpus is.
#include <doctest/doctest.h>

#include <cmath>

#include "model/hardware/read_profile.h"
#include "sim/schedule/latency/make_estimator.h"
#include "tests/golden.h"
#include "tests/support/csv_rows.h"
#include "tests/support/schedule_dump.h"

namespace spillway {
namespace {

/// Sums over instructions of one kind.
struct Agreement {
  int instructions = 0;
  int exact = 0;  ///< to the quarter of a nanosecond that XLA counts in, and what a double keeps
  int near = 0;   ///< within 5 %
  double time = 0, off = 0;

  void add(double theirs, double ours) {
    ++instructions;
    time += theirs;
    off += std::abs(ours - theirs);
    if (std::abs(ours - theirs) <= 3e-4) ++exact;
    if (std::abs(ours - theirs) <= 0.05 * theirs + 1e-9) ++near;
  }
};

TEST_CASE("costs that XLA believed") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const auto machine = [](const std::string& id) {
    return read_profile(testing::source_path("hw_profiles/" + id + ".yaml")).value();
  };
  const HardwareProfile gb200 = machine("gb200"), h100 = machine("h100");
  Agreement tshirt, products, loops, inputs, rest;
  for (const auto& path : testing::find_schedule_dumps(*corpus)) {
    const std::string name = path.parent_path().filename().string();
    CAPTURE(name);
    const testing::ScheduleDump dump = testing::read_schedule_dump(path);
    const bool is_hopper = name.find("h100") != std::string::npos;
    const HardwareProfile& profile = is_hopper ? h100 : gb200;
    const SchedulerChoice choice = choose_scheduler({}, profile.device, dump.program);
    REQUIRE(choice.hides_latencies);
    REQUIRE(choice.costs == (is_hopper ? BelievedCosts::kSpeedOfLight : BelievedCosts::kTShirt));
    CHECK(choice.lacks_table != is_hopper);
    const auto estimator = make_estimator(choice, profile);
    for (const auto& chosen : dump.chosen)
      for (const auto& row : chosen.rows) {
        const InstructionId id{chosen.computation, row.instruction};
        const double ours = estimator->node_cost(dump.program, id);
        const auto kind = dump.program[id.computation].attribute(id.instruction, "kind");
        Agreement& sum = !is_hopper          ? tshirt
                         : kind == "kLoop"   ? loops
                         : kind == "kInput"  ? inputs
                         : kind == "kCustom" ? products
                                             : rest;
        sum.add(row.end - row.start, ours);
      }
  }
  CHECK(tshirt.instructions > 70'000);
  CHECK(tshirt.exact == tshirt.instructions);
  CHECK(rest.exact == rest.instructions);
  CHECK(products.instructions == 55);
  CHECK(products.off < 0.06 * products.time);  // our fit of XLA's table is 5 % short at 4096 cubed
  CHECK(loops.instructions == 278);
  CHECK(loops.exact >= 262);
  CHECK(loops.off < 0.0001 * loops.time);
  CHECK(inputs.instructions == 212);
  CHECK(inputs.exact >= 194);
  CHECK(inputs.near >= 210);
  CHECK(inputs.off < 0.005 * inputs.time);
}

}  // namespace
}  // namespace spillway
