// The measured A100 step, simulated: with the durations that were measured, which tests streams and
// schedule, and with predicted ones. Runs only where the data lies beside the repository.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/simulate.h"
#include "tests/support/a100_run.h"
#include "tests/support/kernel_fit.h"

namespace spillway {
namespace {

using testing::A100Run;

SimResult run(const A100Run& measured, const HardwareProfile& machine, const CostTable& table) {
  const Schedule schedule = text_schedule(measured.program).value();
  const Result<SimResult> result =
      simulate(measured.program, schedule, assign_memory(measured.program, schedule), machine,
               make_topology(4, machine), {.base_costs = &table});
  REQUIRE(result.ok());
  return *result;
}

double ms(Seconds time) { return time.value() * 1e3; }

void print(const std::string& name, const SimResult& result, const A100Run& measured) {
  MESSAGE(name << ": step " << ms(result.step) << " ms of " << ms(measured.step.module) << " ("
               << 100 * (ratio(result.step, measured.step.module) - 1) << " %), kernels "
               << ms(result.compute_busy) << ", exposed collectives "
               << ms(result.exposed_collective) << " of " << ms(measured.step.exposed_collectives)
               << ", idle " << ms(result.idle) << " of " << ms(measured.step.idle));
}

TEST_CASE("the measured step replayed with measured durations") {
  const auto measured = testing::read_a100_run();
  if (!measured) return;
  const HardwareProfile machine = testing::a100_of_40_gb();
  const MeasuredCosts costs_measured = with_measured_times(
      measured->program, costs(measured->program, machine, make_topology(4, machine)),
      testing::times_of(*measured));
  CHECK(costs_measured.unmatched == std::vector<std::string>{"partition-id.1"});  // runs nothing
  CHECK(costs_measured.unmeasured.empty());
  const SimResult result = run(*measured, machine, costs_measured.table);
  print("measured durations", result, *measured);
  CHECK(std::abs(ratio(result.step, measured->step.module) - 1) < 0.02);
  CHECK(ms(result.compute_busy - result.idle) == doctest::Approx(120.3).epsilon(0.002));
  CHECK(std::abs(ms(result.idle - measured->step.idle)) < 0.5);
  // Of a collective the last rank's time was taken: what ranks waited for each other is missing.
  CHECK(result.exposed_collective < measured->step.exposed_collectives);
  CHECK(ms(measured->step.exposed_collectives - result.exposed_collective) < 1.5);
}

/// Each kernel as predicted by the machine that was fitted without its signature; collectives, and
/// kernels beside them, as the model has them.
CostTable costs_of_unseen(const A100Run& measured, const testing::HalfAndHalf& fit) {
  const Topology topology = make_topology(4, fit.for_first);
  CostTable table = costs(measured.program, fit.for_first, topology);
  const CostTable other = costs(measured.program, fit.for_second, topology);
  for (const Executed& executed : executed_computations(measured.program)) {
    std::vector<Cost> mixed;
    for (const InstructionIndex i : measured.program[executed.id].instructions()) {
      const InstructionId id{executed.id, i};
      const bool first =
          testing::is_in_first_half(testing::signature_of(measured.program, id), fit.seed);
      mixed.push_back((first ? table : other).cost(id));
    }
    table.replace_costs(executed.id, std::move(mixed));
  }
  return table;
}

TEST_CASE("the measured step predicted, each kernel by a fit that did not see its signature") {
  const auto measured = testing::read_a100_run();
  if (!measured) return;
  const HardwareProfile machine = testing::a100_of_40_gb();
  const CostTable by_profile = costs(measured->program, machine, make_topology(4, machine));
  print("a100.yaml", run(*measured, machine, by_profile), *measured);

  MeasuredTimes collectives;
  for (const testing::MeasuredOp& op : measured->ops)
    if (op.collective) collectives.emplace(op.name, op.time);
  const auto kernels = testing::kernels_of(*measured);
  for (int seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    const CostTable table =
        costs_of_unseen(*measured, testing::HalfAndHalf(machine, kernels, seed));
    const SimResult predicted = run(*measured, machine, table);
    print("unseen signatures", predicted, *measured);
    CHECK(std::abs(ratio(predicted.step, measured->step.module) - 1) < 0.08);
    const MeasuredCosts known = with_measured_times(measured->program, table, collectives);
    print("and measured collectives", run(*measured, machine, known.table), *measured);
  }
}

}  // namespace
}  // namespace spillway
