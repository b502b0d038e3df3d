// Cases that users reported about overlap, links and contention; docs/cases.md lists them all.
#include <doctest/doctest.h>

#include <algorithm>

#include "model/hardware/read_profile.h"
#include "sim/engine/engine.h"
#include "sim/lowering/machine_tasks.h"
#include "sim/planner/planner.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/sim/planner/example.h"
#include "tests/support/carry_scan.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::CarryScan;
using testing::source_path;
using testing::value_or_fail;

HardwareProfile machine(const std::string& id) {
  return value_or_fail(read_profile(source_path("hw_profiles/" + id + ".yaml")));
}

SimResult run(const Program& program, const HardwareProfile& profile,
              CopyStreams copies = CopyStreams::kDedicated) {
  const Schedule schedule = testing::toy_schedule(program);
  return value_or_fail(simulate(program, schedule, assign_memory(program, schedule), profile,
                                make_topology(program.device_count(), profile),
                                {.copy_streams = copies}));
}

/// An offload of %a and a reload of %h, 1 GiB each, at the same time; nothing else.
Program both_ways() {
  return testing::read_entry(
      "  %a = f32[268435456] parameter(0)\n  %h = f32[268435456]{0:S(5)} parameter(1)\n"
      "  %out = (f32[268435456]{0:S(5)}, f32[268435456], u32[]) copy-start(%a)\n"
      "  %in = (f32[268435456], f32[268435456]{0:S(5)}, u32[]) copy-start(%h)\n"
      "  %in.done = f32[268435456] copy-done(%in)\n"
      "  %out.done = f32[268435456]{0:S(5)} copy-done(%out)\n"
      "  ROOT %r = (f32[268435456], f32[268435456]{0:S(5)}) tuple(%in.done, %out.done)\n");
}

TEST_CASE("C09: a test both ways gives the rate beside the other direction, not a sum") {
  // Reported: 25 GB/s each way alone; together 25 out, and only 11 in.
  HardwareProfile a100 = machine("a100");
  a100.link.host_to_device.value = a100.link.device_to_host.value = BytesPerSecond(25e9);
  a100.link.both_directions.value = BytesPerSecond(36e9);
  a100.link.host_to_device_beside = {BytesPerSecond(11e9), {}};
  const double gib = 1 << 30;
  const SimResult together = run(both_ways(), a100);
  CHECK(together.device_to_host_busy.value() == doctest::Approx(gib / 25e9).epsilon(0.001));
  // 11 GB/s until the offload is over, 25 after.
  const double reload = gib / 25e9 + (gib - gib / 25e9 * 11e9) / 25e9;
  CHECK(together.host_to_device_busy.value() == doctest::Approx(reload).epsilon(0.001));
  CHECK(together.step.value() < 2 * gib / 25e9);  // still better than one after the other
}

TEST_CASE("C11: a list of bytes saved and time added, not one answer") {
  const testing::Example example = testing::read_example("keep");
  const PlanResult plan = value_or_fail(make_plan(example.evaluator()));
  REQUIRE(plan.pareto.size() >= 3);
  const auto fastest = std::ranges::min_element(plan.pareto, {}, &PolicyCase::step);
  for (const PolicyCase& point : plan.pareto) {
    // Each point saves bytes against the fastest, and adds time: neither alone is an answer.
    if (&point == &*fastest) continue;
    CHECK(point.peak_device < fastest->peak_device);
    CHECK(point.step > fastest->step);
  }
}

TEST_CASE("C12: the same step is exposed or not, depending on the version that compiled it") {
  // Two host copies on one of four streams, with a copy within HBM between them.
  std::string text =
      "  %a = f32[268435456] parameter(0)\n  %h = f32[268435456]{0:S(5)} parameter(1)\n"
      "  %s = f32[1024] parameter(2)\n";
  text += "  %out = (f32[268435456]{0:S(5)}, f32[268435456], u32[]) copy-start(%a)\n";
  for (int k = 0; k < 3; ++k)
    text += "  %s" + std::to_string(k) + " = (f32[1024], f32[1024], u32[]) copy-start(%s)\n";
  text +=
      "  %in = (f32[268435456], f32[268435456]{0:S(5)}, u32[]) copy-start(%h)\n"
      "  %slice = (f32[1024], f32[1024], u32[]) copy-start(%s)\n"
      "  %in.done = f32[268435456] copy-done(%in)\n"
      "  %out.done = f32[268435456]{0:S(5)} copy-done(%out)\n";
  for (int k = 0; k < 3; ++k)
    text += "  %d" + std::to_string(k) + " = f32[1024] copy-done(%s" + std::to_string(k) + ")\n";
  text +=
      "  %slice.done = f32[1024] copy-done(%slice)\n"
      "  ROOT %r = (f32[268435456]{0:S(5)}, f32[1024], f32[1024], f32[1024], f32[268435456], "
      "f32[1024]) tuple(%out.done, %d0, %d1, %d2, %in.done, %slice.done)\n";
  const Program program = testing::read_entry(text);
  const HardwareProfile h100 = machine("h100");
  const SimResult own = run(program, h100);
  const SimResult shared = run(program, h100, CopyStreams::kRoundRobin);
  const double out = (1 << 30) / 55.2e9, in = (1 << 30) / 55.36e9;
  CHECK(shared.step.value() == doctest::Approx(out + in).epsilon(0.001));  // one after the other
  CHECK(own.step.value() < shared.step.value() * 0.85);
  // The reload says behind what it stands, and the list of assumptions why it can.
  const auto wait = std::ranges::find_if(
      shared.exposed, [&](const ExposedWait& w) { return program[w.start].name == "in"; });
  REQUIRE(wait != shared.exposed.end());
  CHECK(wait->reason == StallReason::kQueue);
  CHECK(wait->explanation == "it stands behind out in its stream");
  CHECK(std::ranges::find(shared.assumptions,
                          "host copies take four streams in turn with other asynchronous work, as "
                          "before jaxlib 0.12: 2 of 2 have others on theirs") !=
        shared.assumptions.end());
}

TEST_CASE("C13: over PCIe, offload loses to recompute when copies are not pinned or not hidden") {
  // A layer's input of 50.9 MB (batch 4, sequence 1552, width 4096), 32 layers.
  CarryScan offloaded{.layers = 32, .rows = 4 * 1552, .width = 4096, .products = 12};
  const HardwareProfile pinned = machine("a100");
  HardwareProfile pageable = pinned;  // as reported for such copies: 1.4 GB/s instead of 12.6
  for (Figure<BytesPerSecond>* rate :
       {&pageable.link.host_to_device, &pageable.link.device_to_host})
    rate->value = BytesPerSecond(1.4e9);
  pageable.link.both_directions.value = BytesPerSecond(1.4e9);
  const Program program = testing::read_module(offloaded.text());
  const SimResult good = run(program, pinned);
  const SimResult bad = run(program, pageable);
  // Recomputing a layer costs its forward products once more.
  const double compute = good.compute_busy.value();
  const double recompute = compute / 3;
  const double added = good.step.value() - compute;
  MESSAGE("compute " << compute << " s; added: pinned " << added << ", recompute " << recompute
                     << ", pageable " << bad.step.value() - compute);
  CHECK(added / 32 < 0.0025);             // 2 ms of link a layer, no more
  CHECK(added < recompute);               // here the link wins
  CHECK(bad.step.value() - compute > 1);  // seconds, not milliseconds
  CHECK(bad.step.value() - compute > recompute);
}

TEST_CASE("C41: hidden copies slow memory-bound kernels by their share of the HBM") {
  const HardwareProfile gb200 = machine("gb200");
  const double both = gb200.link.both_directions.value.value();
  const double hbm = gb200.device.hbm_bandwidth.value.value();
  const auto beside_copies = [&](Bound bound, double of_hbm) {
    Cost cost{.time = Seconds(0.01),
              .bound = bound,
              .kernel = KernelClass::kElementwise,
              .uses_sms = true};
    cost.hbm_bytes = Bytes(static_cast<std::int64_t>(hbm * of_hbm * cost.time.value()));
    engine::EngineProgram program;
    MachineTasks tasks(program, gb200, 1);
    const auto start = [&](TransferDirection direction) {
      add_start(program, tasks.add_host_copy(direction, Bytes(std::int64_t{100} << 30)),
                add_stream(program), add_slot(program));
    };
    start(TransferDirection::kHostToDevice);
    start(TransferDirection::kDeviceToHost);
    const engine::StepId step = add_run(program, tasks.add_device_task(cost));
    const auto result = value_or_fail(engine::run(program));
    return to_seconds(result.steps[step].busy).value() / cost.time.value();
  };
  const double reached = 1 / gb200.kernels.elementwise.value.value();
  const double slowdown = beside_copies(Bound::kMemory, reached);
  CHECK(slowdown == doctest::Approx(1 / (1 - both / (hbm * reached))).epsilon(0.005));
  CHECK(slowdown > 1.04);
  CHECK(slowdown < 1.06);
  CHECK(beside_copies(Bound::kCompute, 0.3) == 1);
}

}  // namespace
}  // namespace spillway
