#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "sim/schedule/latency/analytical_estimator.h"
#include "sim/schedule/latency/make_estimator.h"
#include "sim/schedule/latency/profile_guided_estimator.h"
#include "sim/schedule/latency/sol_estimator.h"
#include "sim/schedule/latency/tshirt_estimator.h"
#include "tests/golden.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;

/// One of each kind of instruction that estimators tell apart.
constexpr const char* kProgram = R"(
%add_one (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  ROOT %twice = f32[1024]{0} multiply(%p, %p)
}
%gather (g: f32[1024]) -> f32[8192] {
  %g = f32[1024]{0} parameter(0)
  ROOT %gathered = f32[8192]{0} all-gather(%g), dimensions={0}, replica_groups={{0,1,2,3,4,5,6,7}}
}
%reduction (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %sum = f32[] add(%l, %r)
}
%reduced (q: f32[1024]) -> f32[1024] {
  %q = f32[1024]{0} parameter(0)
  ROOT %all = f32[1024]{0} all-reduce(%q), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%reduction
}
%kernel (k: f32[1024]) -> f32[1024] {
  %k = f32[1024]{0} parameter(0)
  ROOT %collective_kernel = f32[1024]{0} fusion(%k), kind=kCustom, calls=%reduced
}
ENTRY %main {
  %a = f32[1024]{0} parameter(0)
  %loop = f32[1024]{0} fusion(%a), kind=kLoop, calls=%add_one
  %input = f32[1024]{0} fusion(%a), kind=kInput, calls=%add_one
  %output = f32[1024]{0} fusion(%a), kind=kOutput, calls=%add_one
  %custom = f32[1024]{0} fusion(%a), kind=kCustom, calls=%add_one
  %call = f32[1024]{0} custom-call(%a), custom_call_target="f"
  %told = f32[1024]{0} custom-call(%a), custom_call_target="f", frontend_attributes={latency_metadata="2500"}
  %start = ((f32[1024]{0}), f32[8192]{0}, u32[]) async-start(%a), calls=%gather
  %done = f32[8192]{0} async-done(%start)
  %kernel_start = ((f32[1024]{0}), f32[1024]{0}, u32[]) async-start(%a), calls=%kernel
  %kernel_done = f32[1024]{0} async-done(%kernel_start)
  %out = (f32[1024]{0:S(5)}, f32[1024]{0}, u32[]) copy-start(%a)
  %outdone = f32[1024]{0:S(5)} copy-done(%out)
  %copy = f32[1024]{0} copy(%a)
  %bitcast = f32[32,32]{1,0} bitcast(%a)
  ROOT %all_of_it = (f32[1024]{0}, f32[32,32]{1,0}) tuple(%copy, %bitcast)
}
)";

Program program() { return testing::toy_program(kProgram, ", num_partitions=8"); }

HardwareProfile machine(const std::string& id) {
  return read_profile(testing::source_path("hw_profiles/" + id + ".yaml")).value();
}

double cost(const LatencyEstimator& estimator, const Program& program, const char* name) {
  return estimator.node_cost(program, find_instruction(program, name));
}

double latency(const LatencyEstimator& estimator, const Program& program, const char* from,
               const char* to) {
  return estimator.latency(program, program.entry, find_instruction(program, from).instruction,
                           find_instruction(program, to).instruction);
}

TEST_CASE("T-shirt sizes") {
  const Program toy = program();
  const TshirtEstimator estimator;
  struct Row {
    const char* instruction;
    double expected;
  };
  const Row rows[] = {{"loop", 1000}, {"input", 1}, {"output", 5000}, {"custom", 1}, {"call", 1000},
                      {"told", 2.5},  {"start", 1}, {"done", 1},      {"out", 1},    {"copy", 1},
                      {"bitcast", 0}, {"a", 0},     {"all_of_it", 0}};
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    CHECK(cost(estimator, toy, row.instruction) == row.expected);
  }
  CHECK(latency(estimator, toy, "start", "done") == 5000);
  CHECK(latency(estimator, toy, "out", "outdone") == 5000);
  // Though the scheduler does not move a kernel on the main stream apart.
  CHECK(latency(estimator, toy, "kernel_start", "kernel_done") == 5000);
  CHECK(latency(estimator, toy, "a", "start") == 1);
  CHECK(latency(estimator, toy, "done", "out") == 1);
}

TEST_CASE("speed of light: kernels by their bytes, copies by the T-shirt size") {
  const Program toy = program();
  const SolEstimator estimator(machine("h100"),
                               {.network = network_belief("9.0"), .partition_size = 0});
  // 4096 B each way at 3352.32 GB/s; 8 blocks may ask for 63.36 GB/s each: 8.0 + 1.25 ns, and of
  // 3 cycles for each of 1024 elements at 4055 a nanosecond 5 %.
  CHECK(cost(estimator, toy, "loop") == doctest::Approx(0.00935).epsilon(0.02));
  CHECK(cost(estimator, toy, "custom") == doctest::Approx(0.01));
  CHECK(cost(estimator, toy, "call") == doctest::Approx(10));
  CHECK(cost(estimator, toy, "told") == doctest::Approx(2.5));
  CHECK(cost(estimator, toy, "start") == 1);
  CHECK(cost(estimator, toy, "kernel_start") == 1);
  CHECK(cost(estimator, toy, "kernel_done") == 1);
  CHECK(cost(estimator, toy, "out") == doctest::Approx(0.01));
  CHECK(latency(estimator, toy, "out", "outdone") == 5000);
  const double gather = latency(estimator, toy, "start", "done");
  CHECK(gather > 1);
  CHECK(gather < 200);
}

TEST_CASE("speed of light between hosts: an S-curve that ignores the fabric") {
  const NetworkBelief hopper = network_belief("9.0");
  CHECK(hopper.nic_gb_per_s == 55.56);
  CHECK(network_belief("10.0").nic_gb_per_s == 111.12);
  // Two hosts, 4 MiB each: 4194304 / 55560 x 1.025 + 13.34 + 68.89 = 159.61 us, an eighth of it.
  const double expected = 0.45 * (100 + (4194304 / 55560.0 * 1.025 + 13.34 + 68.89) / 8);
  CHECK(believed_network_time(CollectiveKind::kAllGather, 2 * 4194304.0, 2, hopper) ==
        doctest::Approx(expected));
  CHECK(believed_network_time(CollectiveKind::kAllReduce, 2 * 4194304.0, 2, hopper) >
        doctest::Approx(expected));
}

TEST_CASE("analytical: nothing but an all-reduce takes more than a launch") {
  const Program toy = program();
  const AnalyticalEstimator estimator(machine("h100"));
  CHECK(latency(estimator, toy, "out", "outdone") == 5);
  CHECK(latency(estimator, toy, "start", "done") == 5);
  CHECK(latency(estimator, toy, "a", "start") == 1);
  CHECK(cost(estimator, toy, "start") == 1);
  CHECK(cost(estimator, toy, "loop") < 1);
}

TEST_CASE("profile-guided: what the profile says, else another's") {
  const Program toy = program();
  ProfiledInstructions profile;
  profile.cost_us = {{"loop", 7}, {"out", 300}, {"gathered", 40}, {"start", 50}};
  profile.latency_us[{"out", "outdone"}] = 250;
  const ProfileGuidedEstimator estimator(profile, std::make_unique<TshirtEstimator>());
  CHECK(cost(estimator, toy, "loop") == 7);
  CHECK(cost(estimator, toy, "call") == 1000);
  CHECK(cost(estimator, toy, "start") == 1);  // of collectives never
  CHECK(cost(estimator, toy, "out") == 300);  // of a copy's start, too
  CHECK(latency(estimator, toy, "out", "outdone") == 250);
  CHECK(latency(estimator, toy, "start", "done") == 50);
  CHECK(latency(estimator, toy, "a", "loop") == 1);
  profile.cost_us.erase("start");
  profile.latency_us.clear();
  const ProfileGuidedEstimator by_wrapped(profile, std::make_unique<TshirtEstimator>());
  CHECK(latency(by_wrapped, toy, "start", "done") == 40);
  CHECK(latency(by_wrapped, toy, "out", "outdone") == 300);
}

TEST_CASE("the estimator of a choice; a profile goes before what stands in for it") {
  const Program toy = program();
  const HardwareProfile h100 = machine("h100"), gb200 = machine("gb200");
  CHECK(cost(*make_estimator(choose_scheduler({}, h100.device, toy), h100), toy, "call") == 10);
  CHECK(cost(*make_estimator(choose_scheduler({}, gb200.device, toy), gb200), toy, "call") == 1000);
  const SchedulerFlags analytical{.analytical = true};
  CHECK(latency(*make_estimator(choose_scheduler(analytical, h100.device, toy), h100), toy, "out",
                "outdone") == 5);
  ProfiledInstructions profile;
  profile.cost_us = {{"loop", 7}};
  for (const HardwareProfile* on : {&h100, &gb200}) {
    const SchedulerChoice choice = choose_scheduler({.has_profile = true}, on->device, toy);
    const auto estimator = make_estimator(choice, *on, {.measured = profile});
    CHECK(cost(*estimator, toy, "loop") == 7);
    CHECK(cost(*estimator, toy, "call") == (on == &h100 ? 10 : 1000));
  }
}

}  // namespace
}  // namespace spillway
