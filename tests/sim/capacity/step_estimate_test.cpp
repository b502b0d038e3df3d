#include "sim/capacity/step_estimate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "model/hardware/find_profile.h"
#include "model/hlo/read_program.h"
#include "sim/model_step.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/support/corpus_models.h"
#include "tests/support/spec_step.h"

namespace spillway {
namespace {

using testing::step_of;

HardwareProfile machine(const std::string& id) {
  return find_profile(id, {{testing::source_path("hw_profiles")}}).value();
}

StepEstimate estimate_of(const StepSpec& step, const HardwareProfile& profile) {
  const Topology topology = make_topology(step.mesh.devices(), profile);
  return StepEstimator::make(step, profile, topology).value().estimate(step);
}

const std::string kLlama =
    "model_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 8192\n";

TEST_CASE("what a configuration changes, and which way") {
  const HardwareProfile gb200 = machine("gb200");
  const StepEstimate full = estimate_of(step_of(kLlama, 8), gb200);
  const StepEstimate minimal = estimate_of(step_of(kLlama + "remat_policy: minimal\n", 8), gb200);
  const StepEstimate offloaded =
      estimate_of(step_of(kLlama + "remat_policy: minimal_offloaded\n", 8), gb200);
  CHECK(full.recomputed > minimal.recomputed);
  CHECK(full.kernels > minimal.kernels);
  CHECK(full.saved < minimal.saved);
  CHECK(full.host == Bytes(0));
  CHECK(offloaded.host > Bytes(0));
  CHECK(offloaded.device < minimal.device);
  CHECK(offloaded.kernels <= minimal.kernels);
  CHECK(full.state == minimal.state);
  CHECK(full.model_flops == minimal.model_flops);
  CHECK(full.tokens == 2 * 8192);
  CHECK(full.step == full.kernels + full.exposed_collectives + full.exposed_copies);

  const StepEstimate accumulated =
      estimate_of(step_of(kLlama + "gradient_accumulation_steps: 4\n", 8), gb200);
  CHECK(accumulated.tokens == 4 * full.tokens);
  CHECK(accumulated.step > full.step * 3.5);
  CHECK(accumulated.step < full.step * 4.0);  // one update
  const StepEstimate host =
      estimate_of(step_of(kLlama + "optimizer_memory_host_offload: true\n", 8), gb200);
  CHECK(host.state < full.state);
  CHECK(host.state + host.host == full.state);
  CHECK(host.exposed_copies > Seconds(0));
}

TEST_CASE("a slower machine is slower, a slower link shows in copies alone") {
  const StepSpec step = step_of(kLlama + "remat_policy: minimal_offloaded\n", 8);
  const HardwareProfile gb200 = machine("gb200");
  HardwareProfile slow = gb200;
  slow.link.host_to_device.value = slow.link.host_to_device.value * 0.1;
  slow.link.device_to_host.value = slow.link.device_to_host.value * 0.1;
  slow.link.both_directions.value = slow.link.both_directions.value * 0.1;
  const StepEstimate fast = estimate_of(step, gb200), slower = estimate_of(step, slow);
  CHECK(slower.exposed_copies > fast.exposed_copies);
  CHECK(slower.kernels == fast.kernels);
  CHECK(estimate_of(step, machine("h100")).kernels > fast.kernels);
}

TEST_CASE("a configuration's program, simulated, takes about what its estimate does") {
  const HardwareProfile gb200 = machine("gb200");
  const Topology topology = make_topology(8, gb200);
  const Budget budget = make_budget(gb200, topology, {}).value();
  for (const char* lookup : {"true", "false"}) {  // by a product, by index
    CAPTURE(lookup);
    const StepSpec step = step_of(kLlama + "use_iota_embed: " + lookup + "\n", 8);
    const Program program =
        order_as_configured(build_step_program(step, step_text_options(gb200)).value(), gb200,
                            topology, budget)
            .value();
    const Schedule schedule = text_schedule(program).value();
    const auto simulated =
        simulate(program, schedule, assign_memory(program, schedule), gb200, topology);
    REQUIRE(simulated.ok());
    CHECK(std::abs(ratio(estimate_of(step, gb200).step, simulated->step) - 1) < 0.1);
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TEST_CASE("against the programs that XLA compiled: their memory, their step simulated") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::vector<double> memory, time;
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    if (!testing::is_plain_maxtext(row)) continue;
    CAPTURE(row.at("id"));
    const HardwareProfile profile = machine(row.at("target"));
    const StepSpec step = testing::corpus_step(row);
    const StepEstimate estimate = estimate_of(step, profile);
    const auto program = read_program((*corpus / row.at("id")).string());
    REQUIRE(program.ok());
    const Topology topology = make_topology(program->device_count(), profile);
    const Schedule schedule = text_schedule(*program).value();
    const auto simulated =
        simulate(*program, schedule, assign_memory(*program, schedule), profile, topology);
    REQUIRE(simulated.ok());
    const double off_memory = ratio(estimate.device, simulated->memory.total_device) - 1;
    const double off_time = ratio(estimate.step, simulated->step) - 1;
    MESSAGE(row.at("id") << ": memory " << 100 * off_memory << " %, step " << 100 * off_time
                         << " %, kernels "
                         << 100 * (ratio(estimate.kernels, simulated->compute_busy) - 1) << " %");
    memory.push_back(std::abs(off_memory));
    time.push_back(std::abs(off_time));
  }
  REQUIRE(!time.empty());
  CHECK(median(time) < 0.06);  // docs/capacity.md
  CHECK(median(memory) < 0.01);
  MESSAGE("median of memory " << 100 * median(memory) << " %, of step " << 100 * median(time)
                              << " %");
}

}  // namespace
}  // namespace spillway
