// Budgets of the toy machine: 1024 B of HBM, of which 64 B are needed beside the pool, and 4096 B
// of host memory for two GPUs.
#include "model/plan/budget.h"

#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <string>

#include "model/hardware/read_profile.h"
#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

HardwareProfile toy_machine() {
  const auto profile = parse_profile(std::string(testing::kToyProfile), "toy.yaml");
  REQUIRE(profile.ok());
  return *profile;
}

/// Of a program that fills a host of the toy machine.
Budget toy_budget(const BudgetWishes& wishes = {}) {
  const Result<Budget> budget =
      make_budget(toy_machine(), {.devices = 2, .gpus_per_host = 2}, wishes);
  REQUIRE(budget.ok());
  return *budget;
}

MemoryTotals device_total(std::int64_t bytes) {
  MemoryTotals totals;
  totals.total_device = Bytes(bytes);
  return totals;
}

TEST_CASE("a budget comes from the profile and from what the user states") {
  constexpr const char* kShare = "the GPU's share of its CPU's memory";
  struct Row {
    const char* name;
    BudgetWishes wishes;
    std::int64_t pool;
    double fraction;
    std::int64_t host;
    const char* host_origin;
  };
  const Row rows[] = {
      {"JAX's default", {}, 768, 0.75, 2048, kShare},
      {"a fraction", {.hbm_limit = {}, .fraction = 0.5, .host_limit = {}}, 512, 0.5, 2048, kShare},
      {"all of it", {.hbm_limit = {}, .fraction = 1.0, .host_limit = {}}, 1024, 1, 2048, kShare},
      {"no part of a byte",
       {.hbm_limit = {}, .fraction = 0.3, .host_limit = {}},
       307,  // of 307.2
       0.3,
       2048,
       kShare},
      {"a limit",
       {.hbm_limit = Bytes(256), .fraction = {}, .host_limit = {}},
       256,
       0.25,
       2048,
       kShare},
      {"a limit goes before a fraction",
       {.hbm_limit = Bytes(256), .fraction = 0.5, .host_limit = {}},
       256,
       0.25,
       2048,
       kShare},
      {"a host limit",
       {.hbm_limit = {}, .fraction = {}, .host_limit = Bytes(100)},
       768,
       0.75,
       100,
       "the limit given"},
      {"a host limit above the share",
       {.hbm_limit = {}, .fraction = {}, .host_limit = Bytes(4096)},
       768,
       0.75,
       4096,
       "the limit given"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Budget budget = toy_budget(row.wishes);
    CHECK(budget.pool == Bytes(row.pool));
    CHECK(budget.fraction == row.fraction);
    CHECK(budget.host == Bytes(row.host));
    CHECK(budget.host_origin == row.host_origin);
    CHECK(budget.hbm == Bytes(1024));
    CHECK(budget.reserve == Bytes(64));
  }
}

TEST_CASE("a CPU's memory is shared by the GPUs of the program that it has") {
  struct Row {
    const char* name;
    Topology topology;
    std::int64_t host;
    const char* origin;
  };
  constexpr const char* kShare = "the GPU's share of its CPU's memory";
  const Row rows[] = {
      {"one device",
       {.devices = 1, .gpus_per_host = 1},
       4096,
       "its CPU's memory, which it has to itself"},
      {"one a host",
       {.devices = 8, .gpus_per_host = 1},
       4096,
       "its CPU's memory, which it has to itself"},
      {"as many as the CPU has", {.devices = 8, .gpus_per_host = 2}, 2048, kShare},
      {"hosts with more CPUs", {.devices = 8, .gpus_per_host = 8}, 2048, kShare},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Result<Budget> budget = make_budget(toy_machine(), row.topology, {});
    REQUIRE(budget.ok());
    CHECK(budget->host == Bytes(row.host));
    CHECK(budget->host_origin == row.origin);
  }
}

TEST_CASE("a limit above the HBM is refused, the HBM itself is not") {
  const auto of = [](std::int64_t limit) {
    return make_budget(toy_machine(), {},
                       {.hbm_limit = Bytes(limit), .fraction = {}, .host_limit = {}});
  };
  CHECK(of(1024).ok());
  const Result<Budget> more = of(1025);
  REQUIRE_FALSE(more.ok());
  CHECK(more.error().kind == ErrorKind::kUsage);
  CHECK(more.error().text == "--hbm-limit 1.00 KiB is above the HBM of toy, 1.00 KiB");
}

TEST_CASE("host memory is all that is pinned, results that reuse an argument counted once") {
  MemoryTotals totals;
  totals.host_temp = Bytes(1000);
  totals.host_argument = Bytes(100);
  totals.host_output = Bytes(30);
  totals.host_alias = Bytes(20);
  totals.argument = totals.output = totals.temp = totals.total_device = Bytes(5);
  CHECK(host_bytes(totals) == Bytes(1110));
}

TEST_CASE("a plan fits up to the last byte of the pool and of the host") {
  struct Row {
    std::int64_t device, host;
    bool fits;
    std::int64_t over_hbm, over_host;
  };
  const Row rows[] = {{0, 0, true, 0, 0},       {768, 0, true, 0, 0},     {769, 0, false, 1, 0},
                      {0, 2048, true, 0, 0},    {0, 2049, false, 0, 1},   {768, 2048, true, 0, 0},
                      {769, 2049, false, 1, 1}, {2000, 0, false, 1232, 0}};
  const Budget budget = toy_budget();
  for (const Row& row : rows) {
    CAPTURE(row.device);
    CAPTURE(row.host);
    MemoryTotals totals = device_total(row.device);
    totals.host_temp = Bytes(row.host);
    const Fit fit = check_fit(totals, budget);
    CHECK(fit.fits == row.fits);
    CHECK(fit.over_hbm == Bytes(row.over_hbm));
    CHECK(fit.over_host == Bytes(row.over_host));
  }
}

TEST_CASE("the reserve lies beside the pool and is not taken from it") {
  // docs/planning.md#budget: a step of 137.2 GiB is known to run in a pool of 138.2 GiB.
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  Budget budget;
  budget.hbm = Bytes(static_cast<std::int64_t>(184.31 * kGibibyte));
  budget.pool = Bytes(static_cast<std::int64_t>(138.2 * kGibibyte));
  budget.reserve = Bytes(static_cast<std::int64_t>(9.7 * kGibibyte));
  const Fit fit = check_fit(device_total(static_cast<std::int64_t>(137.2 * kGibibyte)), budget);
  CHECK(fit.fits);
  CHECK(fit.smallest_fraction == 0.75);
  CHECK(fit.beside_reserve);
}

TEST_CASE("a fraction can be too large: what is beside it must hold the reserve") {
  struct Row {
    std::int64_t device;
    double fraction;
    bool beside_reserve;
  };
  const Row rows[] = {
      {100, 0.1, true},   {952, 0.93, true},  // a pool of 952, and 64 beside it
      {953, 0.94, false},                     // a pool of 962
      {1024, 1.0, false},                     // nothing beside it
      {2048, 2.0, false},                     // not of this device
  };
  const Budget budget = toy_budget();
  for (const Row& row : rows) {
    CAPTURE(row.device);
    const Fit fit = check_fit(device_total(row.device), budget);
    CHECK(fit.smallest_fraction == row.fraction);
    CHECK(fit.beside_reserve == row.beside_reserve);
  }
}

/// The pool that a fraction of so many hundredths gives.
Bytes pool_of(Bytes hbm, std::int64_t hundredths) {
  HardwareProfile profile;
  profile.host.gpus_per_cpu.value = Count(1);
  profile.device.hbm_capacity.value = hbm;
  const double fraction = static_cast<double>(hundredths) / 100;
  return make_budget(profile, {}, {.hbm_limit = {}, .fraction = fraction, .host_limit = {}})->pool;
}

/// Whether `fraction` has two decimals, its pool holds `need`, and the next smaller does not.
void check_smallest(Bytes need, Bytes hbm) {
  CAPTURE(need.value());
  CAPTURE(hbm.value());
  Budget budget;
  budget.hbm = hbm;
  const double fraction = check_fit(device_total(need.value()), budget).smallest_fraction;
  const auto hundredths = static_cast<std::int64_t>(fraction * 100 + 0.5);
  CHECK(fraction == static_cast<double>(hundredths) / 100);
  CHECK(pool_of(hbm, hundredths) >= need);
  CHECK(pool_of(hbm, hundredths - 1) < need);
}

TEST_CASE("the smallest fraction that does is the smallest that does") {
  for (std::int64_t need = 0; need <= 120; ++need) check_smallest(Bytes(need), Bytes(100));
  std::mt19937_64 random(7);
  for (int k = 0; k < 1000; ++k) {
    const Bytes hbm(std::uniform_int_distribution<std::int64_t>(1000, 300'000'000'000)(random));
    const Bytes need(std::uniform_int_distribution<std::int64_t>(0, hbm.value())(random));
    check_smallest(need, hbm);
  }
  // Exactly so many hundredths, and a byte beside them.
  for (std::int64_t hundredths = 1; hundredths <= 100; ++hundredths)
    for (const std::int64_t beside : {-1, 0, 1})
      check_smallest(Bytes(1978977484 * hundredths + beside), Bytes(197897748400));
}

TEST_CASE("holes, the largest block and the node limit a plan by themselves") {
  Budget budget = toy_budget();  // 768 B of HBM, 2 KiB of host memory
  budget.margin = 0.25;
  budget.block = Bytes(400);
  budget.node_host = Bytes(4000);
  budget.devices_per_node = 3;
  CHECK(budget.room() == Bytes(576));
  CHECK(budget.host_room() == Bytes(1333));
  struct Row {
    const char* what;
    std::int64_t device, block, host;
    std::vector<std::string> misses;
    std::int64_t missed;
  };
  const Row rows[] = {
      {"all at their limits", 576, 400, 1333, {}, 0},
      {"a hole's worth too much", 577, 400, 0, {"HBM by 1 B"}, 1},
      {"a block", 576, 401, 0, {"the largest block by 1 B"}, 1},
      {"the node before the device", 0, 0, 1334, {"the node's host memory by 2 B"}, 1},
      {"both, counted once",
       0,
       0,
       2049,
       {"host by 1 B", "the node's host memory by 2.10 KiB"},
       716},
      {"everything",
       600,
       500,
       1400,
       {"HBM by 24 B", "the largest block by 100 B", "the node's host memory by 200 B"},
       24 + 100 + 67},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    MemoryTotals totals = device_total(row.device);
    totals.largest_allocation = Bytes(row.block);
    totals.host_temp = Bytes(row.host);
    const Fit fit = check_fit(totals, budget);
    CHECK(fit.fits == row.misses.empty());
    CHECK(misses_of(fit) == row.misses);
    CHECK(missed(fit, budget) == Bytes(row.missed));
    CHECK(fit.node_host == Bytes(3 * row.host));
  }
}

TEST_CASE("a node has the memory of its CPUs, and a block fits the pool") {
  HardwareProfile machine = toy_machine();
  machine.host.gpus_per_cpu.value = Count(2);
  Topology topology;
  topology.devices = topology.gpus_per_host = 3;
  const Bytes cpu = machine.host.memory_per_cpu.value;
  const Budget budget = make_budget(machine, topology, {}).value();
  CHECK(budget.node_host == cpu * 2);
  CHECK_FALSE(budget.node_host_is_stated);
  CHECK(budget.devices_per_node == 3);
  CHECK(budget.host_room() == budget.host);  // an equal share never binds at the node
  const Budget stated =
      make_budget(machine, topology, {.host_limit = cpu, .node_host_limit = cpu}).value();
  CHECK(stated.host == cpu);
  CHECK(stated.host_room() == cpu / 3);
  const Result<Budget> wrong = make_budget(machine, topology, {.block_limit = Bytes(1000)});
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().text == "--largest-block 1000 B is above the pool, 768 B");
}

}  // namespace
}  // namespace spillway
