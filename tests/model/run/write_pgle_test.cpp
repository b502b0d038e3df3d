#include "model/run/write_pgle.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/run/pgle.h"
#include "tests/golden.h"
#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::toy_machine;
using testing::toy_program;

/// To the host 8 B/s, from it 16 B/s, a copy starts within half a second; host memory is no limit.
HardwareProfile toy_host() {
  HardwareProfile machine = toy_machine();
  machine.link.copy_latency.value = Seconds(0.5);
  machine.link.both_directions.value = BytesPerSecond(12);
  machine.host.memory_bandwidth.value = BytesPerSecond(1000);
  return machine;
}

PgleProfile profile_of(const Program& program, const HardwareProfile& machine) {
  const Topology topology = make_topology(program.device_count(), machine);
  return make_pgle_profile(program, costs(program, machine, topology), machine, topology);
}

/// "a 2; b 0.5": names and seconds.
std::string costs_text(const PgleProfile& profile) {
  std::string text;
  for (const PgleCost& cost : profile.costs)
    text += fmt::format("{}{} {:g}", text.empty() ? "" : "; ", cost.name, cost.time.value());
  return text;
}

std::string copies_text(const PgleProfile& profile) {
  std::string text;
  for (const PgleCopy& copy : profile.copies)
    text += fmt::format("{}{} {:g}{}", text.empty() ? "" : "; ", copy.name, copy.alone.value(),
                        copy.has_cost ? "" : " unnamed");
  return text;
}

/// Two slices of 8 and 16 numbers go to the host in each of four iterations, one of 8 comes back,
/// and one of 8 is copied within HBM.
constexpr const char* kLoop = R"(
%save (a: f32[4,8], u: f32[1,8], i: s32[]) -> f32[4,8] {
  %a = f32[4,8]{1,0:S(5)} parameter(0)
  %u = f32[1,8]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %dus = f32[4,8]{1,0:S(5)} dynamic-update-slice(%a, %u, %i, %i), metadata={scheduling_name="wrapped_save"}
}

%save_wide (a2: f32[4,16], u2: f32[1,16], i2: s32[]) -> f32[4,16] {
  %a2 = f32[4,16]{1,0:S(5)} parameter(0)
  %u2 = f32[1,16]{1,0} parameter(1)
  %i2 = s32[] parameter(2)
  ROOT %dus2 = f32[4,16]{1,0:S(5)} dynamic-update-slice(%a2, %u2, %i2, %i2)
}

%load (a3: f32[4,8], i3: s32[]) -> f32[1,8] {
  %a3 = f32[4,8]{1,0:S(5)} parameter(0)
  %i3 = s32[] parameter(1)
  ROOT %ds = f32[1,8]{1,0} dynamic-slice(%a3, %i3, %i3), dynamic_slice_sizes={1,8}, metadata={scheduling_name="wrapped_load"}
}

%pick (a4: f32[1,16], i4: s32[]) -> f32[1,8] {
  %a4 = f32[1,16]{1,0} parameter(0)
  %i4 = s32[] parameter(1)
  ROOT %part = f32[1,8]{1,0} dynamic-slice(%a4, %i4, %i4), dynamic_slice_sizes={1,8}, metadata={scheduling_name="wrapped_pick"}
}

%condition (c: (s32[], f32[4,8], f32[4,16], f32[1,8], f32[1,16])) -> pred[] {
  %c = (s32[], f32[4,8]{1,0:S(5)}, f32[4,16]{1,0:S(5)}, f32[1,8]{1,0}, f32[1,16]{1,0}) parameter(0)
  ROOT %more = pred[] constant(true)
}

%body (p: (s32[], f32[4,8], f32[4,16], f32[1,8], f32[1,16])) -> (s32[], f32[4,8], f32[4,16], f32[1,8], f32[1,16]) {
  %p = (s32[], f32[4,8]{1,0:S(5)}, f32[4,16]{1,0:S(5)}, f32[1,8]{1,0}, f32[1,16]{1,0}) parameter(0)
  %s1 = ((f32[4,8]{1,0:S(5)}, f32[1,8]{1,0}, s32[]), f32[4,8]{1,0:S(5)}, u32[]) async-start(%p#1, %p#3, %p#0), calls=%save
  %s2 = ((f32[4,16]{1,0:S(5)}, f32[1,16]{1,0}, s32[]), f32[4,16]{1,0:S(5)}, u32[]) async-start(%p#2, %p#4, %p#0), calls=%save_wide
  %s4 = ((f32[1,16]{1,0}, s32[]), f32[1,8]{1,0}, u32[]) async-start(%p#4, %p#0), calls=%pick
  %wide = f32[1,16]{1,0} negate(%p#4), metadata={scheduling_name="fusion.3"}
  %d1 = f32[4,8]{1,0:S(5)} async-done(%s1)
  %d2 = f32[4,16]{1,0:S(5)} async-done(%s2)
  %s3 = ((f32[4,8]{1,0:S(5)}, s32[]), f32[1,8]{1,0}, u32[]) async-start(%d1, %p#0), calls=%load
  %d3 = f32[1,8]{1,0} async-done(%s3)
  %d4 = f32[1,8]{1,0} async-done(%s4)
  ROOT %next = (s32[], f32[4,8]{1,0:S(5)}, f32[4,16]{1,0:S(5)}, f32[1,8]{1,0}, f32[1,16]{1,0}) tuple(%p#0, %d1, %d2, %d3, %wide)
}

ENTRY %main {
  %state = (s32[], f32[4,8]{1,0:S(5)}, f32[4,16]{1,0:S(5)}, f32[1,8]{1,0}, f32[1,16]{1,0}) parameter(0)
  ROOT %loop = (s32[], f32[4,8]{1,0:S(5)}, f32[4,16]{1,0:S(5)}, f32[1,8]{1,0}, f32[1,16]{1,0}) while(%state), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"4"}}, metadata={scheduling_name="while.5"}
}
)";

/// A copy of 4 numbers to the host, then one of 8, and kernels beside them.
constexpr const char* kStraight = R"(
ENTRY %main {
  %x = f32[4]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %out = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(%x), metadata={scheduling_name="copy-start.7"}
  %out2 = (f32[8]{0:S(5)}, f32[8]{0}, u32[]) copy-start(%y)
  %minus = f32[8]{0} negate(%y), metadata={scheduling_name="fusion.1"}
  %late = f32[8]{0} copy(%minus), metadata={scheduling_name="get-tuple-element.4.0"}
  %again.remat = f32[8]{0} negate(%late), metadata={scheduling_name="again"}
  %same = f32[8]{0} negate(%again.remat), metadata={scheduling_name="fusion.1"}
  %out.done = f32[4]{0:S(5)} copy-done(%out)
  %out2.done = f32[8]{0:S(5)} copy-done(%out2)
  ROOT %all = (f32[4]{0:S(5)}, f32[8]{0:S(5)}, f32[8]{0}) tuple(%out.done, %out2.done, %same)
}
)";

TEST_CASE("copies of one iteration and direction wait for each other, and a loop has its time") {
  const PgleProfile profile = profile_of(toy_program(kLoop), toy_host());
  // 32 B and 64 B at 8 B/s, 32 B at 16 B/s, each after half a second. The copy in HBM reads and
  // writes 32 B at 32 B/s, and reads an index. The kernel does so with 64 B, and the loop runs it
  // four times.
  CHECK(costs_text(profile) ==
        "wrapped_save 13; dus2 13; wrapped_pick 2.125; fusion.3 4; wrapped_load 2.5; while.5 16");
  CHECK(copies_text(profile) == "wrapped_save 4.5; dus2 8.5; wrapped_load 2.5");
  CHECK(profile.units_per_us == 1);
}

TEST_CASE("a copy-start has no cost: what XLA takes for it is the longest of them") {
  const PgleProfile profile = profile_of(toy_program(kStraight), toy_host());
  // One name once; a copy made of a get-tuple-element by its own; a clone made after scheduling by
  // that of what it was cloned from.
  CHECK(costs_text(profile) == "fusion.1 2; late 2; again 2");
  CHECK(copies_text(profile) == "copy-start.7 2.5 unnamed; out2 4.5 unnamed");
  CHECK(profile.units_per_us == doctest::Approx(5000 / 4.5e6));
}

TEST_CASE("the slowest of link, HBM and the share of the host's memory is the rate of a copy") {
  struct Row {
    const char* name;
    double link, hbm, memory;
    const char* gpus;
    double rate;
  };
  const Row rows[] = {{"link", 8, 32, 1000, "1", 8},
                      {"HBM", 40, 32, 1000, "1", 32},
                      {"memory", 8, 32, 6, "1", 6},
                      {"memory of two GPUs", 8, 32, 6, "2", 3}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    HardwareProfile machine = toy_host();
    machine.link.device_to_host.value = BytesPerSecond(row.link);
    machine.device.hbm_bandwidth.value = BytesPerSecond(row.hbm);
    machine.host.memory_bandwidth_write = Figure<BytesPerSecond>{BytesPerSecond(row.memory), {}};
    const Program program = toy_program(kStraight, std::string(", num_partitions=") + row.gpus);
    const PgleProfile profile = profile_of(program, machine);
    CHECK(profile.link.device_to_host.value() == row.rate);
    CHECK(profile.copies[0].alone == Seconds(0.5) + Bytes(16) / BytesPerSecond(row.rate));
  }
}

TEST_CASE("profiles stay as they are") {
  check_golden("plan/pgle_loop.pbtxt", to_pbtxt(profile_of(toy_program(kLoop), toy_host())));
  check_golden("plan/pgle_straight.pbtxt",
               to_pbtxt(profile_of(toy_program(kStraight, ", num_partitions=2"), toy_host())));
}

TEST_CASE("our own reader finds every cost as it was written, and nothing else") {
  for (const char* text : {kLoop, kStraight}) {
    const PgleProfile written = profile_of(toy_program(text), toy_host());
    const auto read = parse_pgle(to_pbtxt(written), "toy.pbtxt");
    REQUIRE(read.ok());
    CHECK(read->cost_us.size() == written.costs.size());
    CHECK(read->latency_us.empty());
    for (const PgleCost& cost : written.costs) {
      CAPTURE(cost.name);
      REQUIRE(read->cost_us.contains(cost.name));
      CHECK(read->cost_us.at(cost.name) ==
            doctest::Approx(cost.time.value() * 1e6 * written.units_per_us).epsilon(1e-5));
    }
  }
}

TEST_CASE("names are quoted") {
  const PgleProfile profile{.program = "p",
                            .hardware = "toy",
                            .costs = {{"a\"b\\c", Seconds(1e-6)}},
                            .copies = {},
                            .link = {}};
  CHECK(to_pbtxt(profile).ends_with("costs { name: \"a\\\"b\\\\c\" cost_us: 1 }\n"));
}

}  // namespace
}  // namespace spillway
