// What tasks of a machine get when they run together: on a toy, and against what was published of
// real ones.
#include "sim/lowering/machine_tasks.h"

#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "sim/engine/engine.h"
#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

using engine::EngineProgram;
using engine::StepId;
using engine::TaskId;

/// Starts tasks at the same time, each on a stream of its own; how long each takes.
std::vector<double> run_together(EngineProgram program, const std::vector<TaskId>& tasks) {
  std::vector<StepId> steps;
  for (const TaskId task : tasks)
    steps.push_back(add_start(program, task, add_stream(program), add_slot(program)));
  const auto result = engine::run(program);
  REQUIRE(result.ok());
  std::vector<double> seconds;
  for (const StepId step : steps) seconds.push_back(to_seconds(result->steps[step].busy).value());
  return seconds;
}

constexpr TransferDirection kIn = TransferDirection::kHostToDevice;
constexpr TransferDirection kOut = TransferDirection::kDeviceToHost;

struct Rates {
  double in = 0, out = 0;  ///< GB/s; 0: nothing is copied that way
};

/// What a large copy gets of the link, while the other direction is busy for longer, if asked for.
double rate_of(const HardwareProfile& profile, std::int64_t gpus, TransferDirection direction,
               bool beside_the_other) {
  constexpr Bytes kCopy(100'000'000'000);
  EngineProgram program;
  MachineTasks machine(program, profile, gpus);
  std::vector<TaskId> tasks = {machine.add_host_copy(direction, kCopy)};
  if (beside_the_other)
    tasks.push_back(machine.add_host_copy(direction == kIn ? kOut : kIn, kCopy * 100));
  const double seconds = run_together(program, tasks)[0] - profile.link.copy_latency.value.value();
  return static_cast<double>(kCopy.value()) / seconds / 1e9;
}

// facts/hardware.md 2 and 5: published nvbandwidth and superbench runs, copy engines, GB/s a GPU.
TEST_CASE("published rates come back from the profiles within 5 %") {
  struct Row {
    const char* profile;
    const char* what;
    bool all_gpus;  ///< of a CPU at once, else one
    Rates published;
  };
  const Row rows[] = {
      {"gb200", "one way", false, {200.7, 0}},
      {"gb200", "one way", false, {0, 193.5}},
      {"gb200", "both ways", false, {164.8, 162.6}},
      {"gb200", "all one way", true, {168.5, 0}},
      {"gb200", "all one way", true, {0, 182.1}},
      {"gb200", "all both ways", true, {82.5, 81.6}},
      {"gb300", "one way", false, {211.5, 0}},
      {"gb300", "one way", false, {0, 193.5}},
      {"gb300", "both ways", false, {171.9, 171.1}},
      {"gb300", "all one way", true, {187.6, 0}},
      {"gb300", "all one way", true, {0, 184.9}},
      {"gb300", "all both ways", true, {91.4, 90.9}},
      {"gh200", "one way", false, {370.1, 0}},
      {"gh200", "one way", false, {0, 295.2}},
      {"gh200", "both ways", false, {176.9, 187.3}},
      {"h100", "one way", false, {55.4, 0}},
      {"h100", "one way", false, {0, 55.2}},
      {"h100", "both ways, H800", false, {52.8, 34.5}},
      {"h100", "all one way, H800", true, {55.2, 0}},
      {"h100", "all one way, H800", true, {0, 44.8}},
      {"h100", "all both ways, H800", true, {32.8, 24.1}},
      {"h200", "one way, H100", false, {55.3, 0}},
      {"h200", "one way, H100", false, {0, 55.2}},
      {"h200", "both ways, H800", false, {52.8, 34.5}},
      {"h200", "all both ways, H800", true, {32.8, 24.1}},
      {"b200", "one way", false, {55, 0}},
      {"b200", "one way", false, {0, 56}},
      {"b200", "both ways", false, {51, 48}},
      {"a100", "one way", false, {26.2, 0}},
      {"a100", "one way", false, {0, 26}},
      {"a100", "both ways: their sum, 49.4", false, {24.7, 24.7}},
      {"rtxpro6000", "one way, RTX 5090", false, {56.3, 0}},
      {"rtxpro6000", "one way, RTX 5090", false, {0, 57.3}},
      {"rtxpro6000", "both ways, in of RTX 5090 and out of B300", false, {50.9, 48.7}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.profile);
    CAPTURE(row.what);
    const std::string path =
        std::string(SPILLWAY_SOURCE_DIR) + "/hw_profiles/" + row.profile + ".yaml";
    const auto profile = read_profile(path);
    REQUIRE(profile.ok());
    const std::int64_t gpus = row.all_gpus ? profile->host.gpus_per_cpu.value.value() : 1;
    const auto [in, out] = row.published;
    if (in > 0) CHECK(rate_of(*profile, gpus, kIn, out > 0) == doctest::Approx(in).epsilon(0.05));
    if (out > 0) CHECK(rate_of(*profile, gpus, kOut, in > 0) == doctest::Approx(out).epsilon(0.05));
  }
}

/// 32 B/s of HBM; a link of 4 B/s in, 2 out, 5 both ways; the CPU's memory 6 B/s for its GPUs; a
/// fabric of 8 B/s, a NIC of 2; a product takes twice as long beside a collective.
HardwareProfile toy_machine() {
  auto profile = parse_profile(testing::toy_with("gemm_beside_collective: {value: 1 x",
                                                 "gemm_beside_collective: {value: 2 x"),
                               "toy.yaml");
  REQUIRE(profile.ok());
  return *profile;
}

Cost kernel(double seconds, Bound bound, std::int64_t hbm_bytes) {
  return {.time = Seconds(seconds),
          .bound = bound,
          .kernel = KernelClass::kElementwise,
          .uses_sms = true,
          .hbm_bytes = Bytes(hbm_bytes)};
}

Cost collective(double seconds, std::int64_t hbm, std::int64_t fabric, std::int64_t network = 0) {
  return {.time = Seconds(seconds),
          .bound = Bound::kNetwork,
          .kernel = KernelClass::kCollective,
          .uses_sms = true,
          .hbm_bytes = Bytes(hbm),
          .fabric_bytes = Bytes(fabric),
          .network_bytes = Bytes(network)};
}

TEST_CASE("what runs beside something takes what is left") {
  const Cost memory_bound = kernel(2, Bound::kMemory, 64);
  const Cost product = kernel(2, Bound::kCompute, 16);
  const Cost light = collective(100, 0, 0);        // holds SMs, moves next to nothing
  const Cost heavy = collective(100, 100 * 8, 0);  // takes a quarter of the HBM
  struct Row {
    const char* name;
    Cost first;
    std::vector<Cost> beside;
    std::int64_t in = 0, out = 0;  ///< bytes of copies beside it
    double seconds;                ///< of the first
  };
  const Row rows[] = {
      {"a memory-bound kernel alone", memory_bound, {}, 0, 0, 2},
      {"beside a reload: 28 of 32 B/s are left", memory_bound, {}, 400, 0, 2.0 * 32 / 28},
      {"beside copies both ways: 27 are left", memory_bound, {}, 400, 400, 2.0 * 32 / 27},
      {"a product hides the copies", product, {}, 400, 400, 2},
      {"a product beside a collective loses SMs", product, {light}, 0, 0, 4},
      {"a memory-bound kernel does not", memory_bound, {light}, 0, 0, 2},
      {"but loses the HBM the collective takes", memory_bound, {heavy}, 0, 0, 2.0 * 32 / 24},
      {"all at once", memory_bound, {heavy}, 400, 400, 2.0 * 32 / 19},
      {"a small kernel notices nothing", kernel(2, Bound::kLaunch, 4), {heavy}, 400, 400, 2},
      {"two collectives share the fabric: 2/3 of it each",
       collective(3, 0, 16),
       {collective(300, 0, 1600)},
       0,
       0,
       4},
      {"or not, where it has room", collective(3, 0, 8), {collective(300, 0, 800)}, 0, 0, 3},
      {"two collectives share the NIC",
       collective(4, 0, 0, 8),
       {collective(400, 0, 0, 800)},
       0,
       0,
       8},
      {"a collective is not slowed by kernels",
       collective(4, 8, 8),
       {product, memory_bound},
       0,
       0,
       4},
  };
  const HardwareProfile toy = toy_machine();
  for (const Row& row : rows) {
    CAPTURE(row.name);
    EngineProgram program;
    MachineTasks machine(program, toy, 1);
    std::vector<TaskId> tasks = {machine.add_device_task(row.first)};
    for (const Cost& cost : row.beside) tasks.push_back(machine.add_device_task(cost));
    const Seconds start_up = toy.link.copy_latency.value;
    // The copies begin to move when the kernel begins: as late as their start-up.
    program.tasks[tasks[0]].latency = to_sim_time(row.in + row.out > 0 ? start_up : Seconds(0));
    if (row.in > 0) tasks.push_back(machine.add_host_copy(kIn, Bytes(row.in)));
    if (row.out > 0) tasks.push_back(machine.add_host_copy(kOut, Bytes(row.out)));
    const double took = run_together(program, tasks)[0];
    CHECK(took - to_seconds(program.tasks[tasks[0]].latency).value() ==
          doctest::Approx(row.seconds).epsilon(1e-9));
  }
}

TEST_CASE("traffic of collectives over PCIe takes from copies to the host") {
  HardwareProfile toy = toy_machine();
  toy.link.device_to_host.value = BytesPerSecond(4);
  toy.link.both_directions.value = BytesPerSecond(8);
  toy.host.memory_bandwidth.value = BytesPerSecond(8);
  struct Row {
    const char* name;
    FabricKind fabric;
    LinkKind link;
    Cost collective;
    double seconds;  ///< of a reload of 12 B beside it, at 4 B/s alone
  };
  // The collective takes 2 B/s: half of the wires. Together they run at 2/3.
  const Row rows[] = {
      {"NVLink is another wire", FabricKind::kNvlink, LinkKind::kPcie, collective(80, 0, 160), 3},
      {"PCIe between GPUs is the same", FabricKind::kPcie, LinkKind::kPcie, collective(80, 0, 160),
       4.5},
      {"so is that to a NIC", FabricKind::kNvlink, LinkKind::kPcie, collective(80, 0, 0, 160), 4.5},
      {"but not where the host hangs on NVLink", FabricKind::kNvlink, LinkKind::kNvlinkC2c,
       collective(80, 0, 0, 160), 3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    toy.scale_up.kind = row.fabric;
    toy.link.kind = row.link;
    EngineProgram program;
    MachineTasks machine(program, toy, 1);
    const TaskId reload = machine.add_host_copy(kIn, Bytes(12));
    program.tasks[reload].latency = SimTime(0);
    const auto took = run_together(program, {reload, machine.add_device_task(row.collective)});
    CHECK(took[0] == doctest::Approx(row.seconds).epsilon(1e-9));
  }
}

TEST_CASE("a kernel that reaches into host memory takes of the link") {
  const HardwareProfile toy = toy_machine();
  Cost reads = kernel(3, Bound::kHostLink, 0);
  reads.host_to_device = Bytes(12);
  EngineProgram program;
  MachineTasks machine(program, toy, 1);
  const TaskId reload = machine.add_host_copy(kIn, Bytes(1200));
  program.tasks[reload].latency = SimTime(0);
  const double beside = run_together(program, {machine.add_device_task(reads), reload})[0];
  CHECK(beside > 5);  // 3 alone; about half the link is left
  CHECK(beside < 8);
}

}  // namespace
}  // namespace spillway
