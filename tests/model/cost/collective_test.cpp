#include "model/cost/collective.h"

#include <doctest/doctest.h>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_machine;
using testing::toy_program;

TEST_CASE("devices fill domains evenly") {
  struct Row {
    std::int64_t devices;
    std::int64_t per_domain, per_host;
    const char* assumption;
  };
  HardwareProfile rack = toy_machine();
  rack.scale_up.domain_gpus.value = Count(72);
  rack.host.gpus_per_cpu.value = Count(4);
  const Row rows[] = {
      {128, 64, 4,
       "128 GPUs in 2 nvlink domains of 64 (one holds 72), 4 a host, device ids in that order"},
      {72, 72, 4,
       "72 GPUs in one nvlink domain (one holds 72), 4 a host, device ids in that order"},
      {100, 50, 2,
       "100 GPUs in 2 nvlink domains of 50 (one holds 72), 2 a host, device ids in that order"},
      {1, 1, 1, "1 GPUs in one nvlink domain (one holds 72), 1 a host, device ids in that order"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.devices);
    const Topology topology = make_topology(row.devices, rack);
    CHECK(topology.devices == row.devices);
    CHECK(topology.gpus_per_domain == row.per_domain);
    CHECK(topology.gpus_per_host == row.per_host);
    CHECK(topology.assumption == row.assumption);
  }
}

TEST_CASE("a stated grid of hosts places devices") {
  HardwareProfile rack = toy_machine();
  rack.scale_up.domain_gpus.value = Count(72);
  rack.host.gpus_per_cpu.value = Count(4);
  struct Row {
    std::int64_t devices;
    HostGrid grid;
    std::int64_t per_domain, per_host;
  };
  const Row rows[] = {
      {128, {.hosts = 32, .gpus = 4}, 64, 4},   // whole hosts share a domain
      {128, {.hosts = 2, .gpus = 64}, 64, 64},  // more than the profile's host holds
      {120, {.hosts = 40, .gpus = 3}, 60, 3},
      {256, {.hosts = 2, .gpus = 128}, 64, 128},  // more than a domain holds
  };
  for (const Row& row : rows) {
    CAPTURE(row.devices);
    const auto topology = make_topology(row.devices, rack, row.grid);
    REQUIRE(topology.ok());
    CHECK(topology->gpus_per_domain == row.per_domain);
    CHECK(topology->gpus_per_host == row.per_host);
  }
  CHECK(make_topology(8, rack, {.hosts = 1, .gpus = 8})->assumption ==
        "8 GPUs in one nvlink domain (one holds 72), 8 a host as stated (toy has 4), device ids in "
        "that order");
  HardwareProfile boxes = toy_machine();  // a domain is a host of 4
  boxes.host.gpus_per_cpu.value = Count(4);
  CHECK(make_topology(16, boxes, {.hosts = 8, .gpus = 2})->gpus_per_domain == 2);

  const auto wrong = make_topology(128, rack, {.hosts = 3, .gpus = 4});
  REQUIRE_FALSE(wrong.ok());
  CHECK(to_text(wrong.error()) ==
        "error: 3x4 GPUs are not the 128 of the program\n"
        "  hosts x GPUs, for example 32x4");
}

TEST_CASE("the layout of a collective is that of its worst group") {
  const Topology topology = make_topology(8, toy_machine());  // two domains of 4
  CHECK(layout_of({{0, 1, 2, 3}, {4, 5, 6, 7}}, topology) == GroupLayout{4, 1, 4});
  CHECK(layout_of({{0, 1, 2, 3, 4, 5, 6, 7}}, topology) == GroupLayout{8, 2, 4});
  CHECK(layout_of({{0, 4}, {1, 5}}, topology) == GroupLayout{2, 2, 1});
  CHECK(layout_of({{0, 1}, {3, 4}}, topology) == GroupLayout{2, 2, 1});
  CHECK(layout_of({{0, 1, 2, 4}}, topology) == GroupLayout{4, 2, 1});
  CHECK(layout_of({}, topology) == GroupLayout{1, 1, 1});
}

/// The collective %x of a program on 8 devices.
Collective collective_of(const std::string& line, const std::string& before = "") {
  const Program program = toy_program(before + R"(
%add (x: f32[], y: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[8], q: f32[8]) -> f32[] {
  %p = f32[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %x = )" + line + "\n  ROOT %end = f32[] constant(0)\n}\n",
                                      ", num_partitions=8");
  const auto found =
      find_collective(program, find_instruction(program, "x"), make_topology(8, toy_machine()));
  REQUIRE(found.has_value());
  return *found;
}

TEST_CASE("what a collective moves, however it is written") {
  struct Row {
    std::string name;
    std::string before, line;
    CollectiveKind kind;
    std::int64_t bytes, tensors;
    GroupLayout group;
  };
  const std::string four = ", replica_groups=[2,4]<=[8], use_global_device_ids=true, channel_id=1";
  const std::string wrapped = R"(
%wrapped (g: f32[8]) -> f32[32] {
  %g = f32[8]{0} parameter(0)
  ROOT %all = f32[32]{0} all-gather(%g), dimensions={0})" +
                              four + "\n}\n";
  const Row rows[] = {
      {"gather",
       "",
       "f32[32]{0} all-gather(%p), dimensions={0}" + four,
       CollectiveKind::kAllGather,
       128,
       1,
       {4, 1, 4}},
      {"generic start",
       wrapped,
       "((f32[8]{0}), f32[32]{0}) async-start(%p), calls=%wrapped",
       CollectiveKind::kAllGather,
       128,
       1,
       {4, 1, 4}},
      {"named start of two",
       "",
       "((f32[8]{0}, f32[8]{0}), (f32[32]{0}, f32[32]{0})) all-gather-start(%p, %q), "
       "dimensions={0}" +
           four,
       CollectiveKind::kAllGather,
       256,
       2,
       {4, 1, 4}},
      {"scatter",
       "",
       "f32[2]{0} reduce-scatter(%p), dimensions={0}, to_apply=%add" + four,
       CollectiveKind::kReduceScatter,
       32,
       1,
       {4, 1, 4}},
      {"reduce over everybody",
       "",
       "f32[8]{0} all-reduce(%p), replica_groups={}, to_apply=%add, channel_id=1, "
       "use_global_device_ids=true",
       CollectiveKind::kAllReduce,
       32,
       1,
       {8, 2, 4}},
      {"exchange",
       "",
       "(f32[8]{0}, f32[8]{0}) all-to-all(%p, %q), replica_groups={{0,4},{1,5}}, "
       "channel_id=1",
       CollectiveKind::kAllToAll,
       64,
       1,
       {2, 2, 1}},
      {"permute",
       "",
       "f32[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,2}}, "
       "channel_id=1",
       CollectiveKind::kPermute,
       32,
       1,
       {2, 1, 2}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Collective found = collective_of(row.line, row.before);
    CHECK(found.kind == row.kind);
    CHECK(found.tensor == Bytes(row.bytes));
    CHECK(found.tensors == row.tensors);
    CHECK(found.group == row.group);
    CHECK(found.groups_known);
  }
  const Collective damaged =
      collective_of("f32[8]{0} all-reduce(%p), replica_groups={{0,0}}, to_apply=%add");
  CHECK_FALSE(damaged.groups_known);
  CHECK(damaged.group == GroupLayout{8, 2, 4});
}

TEST_CASE("time inside a domain is a latency and the bytes on the bus") {
  // 64 bytes; groups start within 1 s of 2, 2 s of 3, 3 s of 4 GPUs; 4 B/s
  struct Row {
    std::string name;
    CollectiveKind kind;
    std::int64_t gpus;
    double time;
    std::int64_t fabric, hbm;
  };
  const Row rows[] = {
      {"gather", CollectiveKind::kAllGather, 4, 3 + 12, 48, 96},
      {"scatter", CollectiveKind::kReduceScatter, 4, 3 + 12, 48, 96},
      {"reduce", CollectiveKind::kAllReduce, 4, 3 + 24, 96, 192},
      {"exchange", CollectiveKind::kAllToAll, 4, 3 + 12, 48, 96},
      {"permute", CollectiveKind::kPermute, 4, 3 + 16, 64, 128},
      {"a smaller group", CollectiveKind::kAllGather, 2, 1 + 8, 32, 64},
      {"a size between two fits", CollectiveKind::kAllGather, 3, 2 + 43 / 4.0, 43, 86},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Cost cost = collective_cost(
        {.kind = row.kind, .tensor = Bytes(64), .group = {row.gpus, 1, row.gpus}}, toy_machine());
    CHECK(cost.time.value() == doctest::Approx(row.time));
    CHECK(cost.bound == Bound::kNetwork);
    CHECK(cost.kernel == KernelClass::kCollective);
    CHECK(cost.uses_sms);
    CHECK(cost.fabric_bytes == Bytes(row.fabric));
    CHECK(cost.network_bytes == Bytes(0));
    CHECK(cost.hbm_bytes == Bytes(row.hbm));
  }
}

TEST_CASE("chunks that wait for each other, and few channels, add to the time on the bus") {
  // 48 bytes on the bus of four at 4 B/s: 12 s, after a latency of 3 s
  struct Row {
    const char* name;
    double pipeline;
    std::optional<FewChannels> few;
    double time;
  };
  const Row rows[] = {
      {"neither", 0, std::nullopt, 3 + 12},
      {"chunks", 3, std::nullopt, 3 + 12 + 2 * 6},
      {"few channels all the way", 0, FewChannels{BytesPerSecond(2), Bytes(1000)}, 3 + 24},
      {"few channels up to 32 bytes", 0, FewChannels{BytesPerSecond(2), Bytes(32)}, 3 + 16},
      {"few channels that all overtake", 0, FewChannels{BytesPerSecond(2), Bytes(16)}, 3 + 12},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    HardwareProfile machine = toy_machine();
    machine.scale_up.all_gather.fits = {
        {Count(4), Seconds(3), BytesPerSecond(4), Seconds(row.pipeline), row.few}};
    const Cost cost = collective_cost(
        {.kind = CollectiveKind::kAllGather, .tensor = Bytes(64), .group = {4, 1, 4}}, machine);
    CHECK(cost.time.value() == doctest::Approx(row.time));
    CHECK(cost.bound == Bound::kNetwork);
  }
}

TEST_CASE("time across domains is that of the slower of fabric and network") {
  // 64 bytes over two domains of 4; a step of the network takes 10 s, a NIC carries 1 B/s
  struct Row {
    std::string name;
    CollectiveKind kind;
    GroupLayout group;
    double time;
    std::int64_t fabric, network;
  };
  const Row rows[] = {
      {"gather: 56 on the fabric, 14 on each NIC",
       CollectiveKind::kAllGather,
       {8, 2, 4},
       3 + 10 + 14,
       56,
       14},
      {"reduce: across there and back", CollectiveKind::kAllReduce, {8, 2, 4}, 3 + 20 + 24, 96, 16},
      {"exchange: half of it leaves the domain",
       CollectiveKind::kAllToAll,
       {8, 2, 4},
       3 + 10 + 32,
       24,
       32},
      {"nobody shares a domain", CollectiveKind::kAllGather, {2, 2, 1}, 10 + 32, 0, 32},
      {"permute", CollectiveKind::kPermute, {2, 2, 1}, 10 + 64, 0, 64},
      {"three domains", CollectiveKind::kAllGather, {12, 3, 4}, 3 + 20 + 59 / 4.0, 59, 15},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Cost cost =
        collective_cost({.kind = row.kind, .tensor = Bytes(64), .group = row.group}, toy_machine());
    CHECK(cost.time.value() == doctest::Approx(row.time).epsilon(0.01));
    CHECK(cost.fabric_bytes == Bytes(row.fabric));
    CHECK(cost.network_bytes == Bytes(row.network));
  }
}

TEST_CASE("combined tensors, lone devices and unknown groups") {
  HardwareProfile machine = toy_machine();
  machine.scale_up.per_tensor.value = Seconds(5);
  Collective collective{
      .kind = CollectiveKind::kAllGather, .tensor = Bytes(64), .tensors = 3, .group = {4, 1, 4}};
  CHECK(collective_cost(collective, machine).time == Seconds(3 + 2 * 5 + 12));
  collective.groups_known = false;
  CHECK(collective_cost(collective, machine).bound == Bound::kUnknown);
  collective.group = {1, 1, 1};
  machine.kernels.launch_floor.value = Seconds(2);
  CHECK(collective_cost(collective, machine).time == Seconds(2));
  CHECK(collective_cost(collective, machine).fabric_bytes == Bytes(0));
}

}  // namespace
}  // namespace spillway
