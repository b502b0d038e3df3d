// One step on the toy machine: 8 FLOP/s, 32 B/s of HBM, 2 B/s to the host, 4 B/s from it, 1 s to
// start a copy. A 2x2x2 product takes 2 s, an offload of 12 B 1 + 6 s, a reload of 12 B 1 + 3 s.
#include "sim/simulate.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "model/cost/measured_costs.h"
#include "model/hardware/read_profile.h"
#include "tests/model/hardware/toy_profile.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::read_entry;
using testing::read_module;

HardwareProfile toy_machine() {
  const auto profile = parse_profile(std::string(testing::kToyProfile), "toy.yaml");
  REQUIRE(profile.ok());
  return *profile;
}

SimResult run(const Program& program, const HardwareProfile& profile = toy_machine(),
              SimOptions options = {.copy_streams = CopyStreams::kDedicated}) {
  const Schedule schedule = text_schedule(program).value();
  const Result<SimResult> result =
      simulate(program, schedule, assign_memory(program, schedule), profile,
               make_topology(program.device_count(), profile), options);
  REQUIRE(result.ok());
  return *result;
}

std::string product(const std::string& name) {
  return "  %" + name +
         " = bf16[2,2] dot(%m, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
}

std::string products(const std::string& name, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += product(name + std::to_string(k));
  return text;
}

constexpr const char* kParameters = "  %m = bf16[2,2] parameter(0)\n  %x = f32[3] parameter(1)\n";
constexpr const char* kOffload = "  %out = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%x)\n";
constexpr const char* kOffloadDone = "  %out.done = f32[3]{0:S(5)} copy-done(%out)\n";
constexpr const char* kReload = "  %in = (f32[3], f32[3]{0:S(5)}, u32[]) copy-start(%out.done)\n";
constexpr const char* kReloadDone = "  %in.done = f32[3] copy-done(%in)\n";

TEST_CASE("an offload hides behind the kernels between its start and its done") {
  struct Row {
    int before, between;
    double step, exposed;
  };
  const Row rows[] = {{0, 0, 7, 7}, {0, 1, 7, 5}, {0, 3, 7, 1}, {0, 4, 8, 0}, {2, 1, 11, 5}};
  for (const Row& row : rows) {
    CAPTURE(row.before);
    CAPTURE(row.between);
    const Program program =
        read_entry(kParameters + products("a", row.before) + kOffload + products("b", row.between) +
                   kOffloadDone + "  ROOT %r = (f32[3]{0:S(5)}) tuple(%out.done)\n");
    const SimResult result = run(program);
    CHECK(result.step.value() == row.step);
    CHECK(result.exposed_device_to_host.value() == row.exposed);
    CHECK(result.exposed_host_to_device.value() == 0);
    CHECK(result.compute_busy.value() == 2.0 * (row.before + row.between));
    CHECK(result.device_to_host_busy.value() == 7);
  }
}

TEST_CASE("the cause of an exposed copy is what stands in its way") {
  const std::string round_trip = std::string(kOffload) + kOffloadDone + kReload;
  struct Row {
    const char* name;
    std::string body;
    const char* instruction;
    StallReason reason;
    const char* explanation;
  };
  const Row rows[] = {
      {"nothing to hide it", std::string(kOffload) + product("a") + kOffloadDone, "out",
       StallReason::kLink, "only 2.000 s of kernels run between its start and the wait"},
      {"kernels before the start", products("a", 3) + kOffload + kOffloadDone, "out",
       StallReason::kIssuedLate, "it could have started 6.000 s of kernels earlier"},
      {"kernels before the use",
       round_trip + kReloadDone + products("a", 2) + "  %use = f32[3] add(%in.done, %in.done)\n",
       "in", StallReason::kDoneEarly, "4.000 s of kernels follow before anything reads it"},
      {"behind another",
       std::string(kOffload) +
           "  %y = f32[3] parameter(2)\n  %two = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%y)\n"
           "  %two.done = f32[3]{0:S(5)} copy-done(%two)\n" +
           kOffloadDone,
       "two", StallReason::kQueue, "it stands behind out in its stream"},
      {"behind two, of which the first takes longer",
       "  %y = f32[30] parameter(2)\n  %big = (f32[30]{0:S(5)}, f32[30], u32[]) copy-start(%y)\n" +
           std::string(kOffload) +
           "  %two = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%x)\n"
           "  %two.done = f32[3]{0:S(5)} copy-done(%two)\n",
       "two", StallReason::kQueue, "it stands behind big in its stream"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_entry(kParameters + row.body + "  ROOT %r = () tuple()\n");
    const SimResult result = run(program);
    const auto wait = std::ranges::find_if(result.exposed, [&](const ExposedWait& w) {
      return program[w.start].name == row.instruction;
    });
    REQUIRE(wait != result.exposed.end());
    CHECK(wait->reason == row.reason);
    CHECK(wait->explanation == row.explanation);
  }
}

// A loop of four iterations: offload, one product, wait: 7 s each, 5 of them exposed.
constexpr const char* kLoop = R"(HloModule toy, is_scheduled=true

%body (s: (s32[], bf16[2,2], f32[3])) -> (s32[], bf16[2,2], f32[3]) {
  %s = (s32[], bf16[2,2], f32[3]) parameter(0)
  %out = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%s#2)
  %a = bf16[2,2] dot(%s#1, %s#1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %out.done = f32[3]{0:S(5)} copy-done(%out)
  ROOT %next = (s32[], bf16[2,2], f32[3]) tuple(%s#0, %a, %s#2)
}

%condition (c: (s32[], bf16[2,2], f32[3])) -> pred[] {
  %c = (s32[], bf16[2,2], f32[3]) parameter(0)
  %four = s32[] constant(4)
  ROOT %lt = pred[] compare(%c#0, %four), direction=LT
}

ENTRY %main {
  %p = (s32[], bf16[2,2], f32[3]) parameter(0)
  ROOT %loop = (s32[], bf16[2,2], f32[3]) while(%p), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"4"}}
}
)";

TEST_CASE("a loop runs as often as XLA knows, extended or not") {
  const Program program = read_module(kLoop);
  for (const bool extend : {true, false}) {
    CAPTURE(extend);
    const SimResult result = run(program, toy_machine(),
                                 {.copy_streams = CopyStreams::kDedicated, .extend_loops = extend});
    CHECK(result.step.value() == 28);
    CHECK(result.exposed_device_to_host.value() == 20);
    CHECK(result.traffic.device_to_host == Bytes(48));
    CHECK(result.flops.dot_per_step == Flops(64));
  }
}

TEST_CASE("an unknown call is named, and takes what its operands and results take at least") {
  const Program program = read_entry(
      "  %x = f32[8] parameter(0)\n"
      "  %mine = f32[8] custom-call(%x), custom_call_target=\"mine\"\n"
      "  %again = f32[8] custom-call(%mine), custom_call_target=\"mine\"\n"
      "  ROOT %other = (f32[8], u8[0]) custom-call(%again), custom_call_target=\"other\"\n");
  const SimResult result = run(program);
  CHECK(result.unknown == std::vector<std::string>{"mine", "other"});
  CHECK(result.step.value() == 6);  // 64 B of HBM each
}

TEST_CASE("measured times stand for the model's, and nothing slows them again") {
  const std::string gather =
      "  %start = (f32[3], f32[6]) all-gather-start(%x), dimensions={0}, replica_groups={{0,1}}\n";
  const Program program =
      read_entry(kParameters + gather + products("a", 2) +
                 "  %done = f32[6] all-gather-done(%start)\n"
                 "  ROOT %mine = f32[6] custom-call(%done), custom_call_target=\"mine\"\n");
  const HardwareProfile machine = toy_machine();
  const CostTable modelled =
      costs(program, machine, make_topology(program.device_count(), machine));
  const MeasuredCosts measured = with_measured_times(
      program, modelled,
      {{"a0", Seconds(3)}, {"a1", Seconds(5)}, {"start", Seconds(9)}, {"mine", Seconds(7)}});
  CHECK(measured.unmeasured.empty());
  CHECK(measured.unmatched.empty());
  const SimResult result = run(program, machine, {.base_costs = &measured.table});
  CHECK(result.compute_busy == Seconds(15));
  CHECK(result.collective_busy == Seconds(9));
  CHECK(result.exposed_collective == Seconds(1));
  CHECK(result.step == Seconds(16));
  CHECK(result.unknown.empty());
}

TEST_CASE("a copy to the host that was measured takes what was measured") {
  const Program program =
      read_entry(kParameters + std::string(kOffload) + products("a", 2) + kOffloadDone);
  const HardwareProfile machine = toy_machine();
  const CostTable modelled =
      costs(program, machine, make_topology(program.device_count(), machine));
  const auto start = run(program, machine).streams.at(0).start;
  const MeasuredCosts measured =
      with_measured_times(program, modelled, {{std::string(program[start].name), Seconds(20)}});
  const SimResult result = run(program, machine, {.base_costs = &measured.table});
  CHECK(result.device_to_host_busy == Seconds(20));
  CHECK(result.exposed_device_to_host == Seconds(16));  // beside 4 s of kernels
}

TEST_CASE("a loop of unknown count runs once and says so") {
  std::string text = kLoop;
  text.replace(text.find(", backend_config"), std::string::npos, "\n}\n");
  const SimResult result = run(read_module(text));
  CHECK(result.traffic.device_to_host == Bytes(12));
  REQUIRE(result.assumptions.size() == 2);
  CHECK(result.assumptions[1] == "loop loop runs once: its trip count is not known");
}

TEST_CASE("a conditional takes the branch that takes longest, what its loops run counted") {
  std::string text = kLoop;
  text.replace(text.find("ENTRY"), std::string::npos,
               R"(%long (l: (s32[], bf16[2,2], f32[3])) -> (s32[], bf16[2,2], f32[3]) {
  %l = (s32[], bf16[2,2], f32[3]) parameter(0)
  ROOT %loop = (s32[], bf16[2,2], f32[3]) while(%l), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"4"}}
}

%short (t: (s32[], bf16[2,2], f32[3])) -> (s32[], bf16[2,2], f32[3]) {
  %t = (s32[], bf16[2,2], f32[3]) parameter(0)
  %once = bf16[2,2] dot(%t#1, %t#1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %done = (s32[], bf16[2,2], f32[3]) tuple(%t#0, %once, %t#2)
}

ENTRY %main {
  %p = (s32[], bf16[2,2], f32[3]) parameter(0)
  %which = pred[] constant(true)
  ROOT %end = (s32[], bf16[2,2], f32[3]) conditional(%which, %p, %p), true_computation=%short, false_computation=%long
}
)");
  CHECK(run(read_module(text)).step.value() == 28);
}

TEST_CASE("GPUs that share a CPU share its memory, the others do not") {
  // 12 B in 1 s of start-up and at 4 B/s of the link, or at 3 B/s, half of the host's memory.
  const Program program =
      read_entry(std::string("  %y = f32[3]{0:S(5)} parameter(0)\n"
                             "  %in = (f32[3], f32[3]{0:S(5)}, u32[]) copy-start(%y)\n") +
                 kReloadDone + "  ROOT %r = (f32[3]) tuple(%in.done)\n");
  const Schedule schedule = text_schedule(program).value();
  const std::string shared = "all 2 GPUs of a host CPU copy at the same time and share its memory";
  struct Row {
    const char* name;
    Topology topology;
    double step;
    std::vector<std::string> assumptions;
  };
  const Row rows[] = {
      {"one device", {}, 4, {}},
      {"one a host", {.devices = 8, .gpus_per_domain = 1, .gpus_per_host = 1}, 4, {}},
      {"two a host", {.devices = 2, .gpus_per_domain = 2, .gpus_per_host = 2}, 5, {shared}},
      {"eight a host, on four CPUs", {.devices = 8, .gpus_per_host = 8}, 5, {shared}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Result<SimResult> result =
        simulate(program, schedule, assign_memory(program, schedule), toy_machine(), row.topology,
                 {.copy_streams = CopyStreams::kDedicated});
    REQUIRE(result.ok());
    CHECK(result->step.value() == row.step);
    CHECK(result->assumptions == row.assumptions);
  }
}

TEST_CASE("what takes longer than any step is an error about the program") {
  const auto error_of = [](const std::string& text) {
    const Program program = read_module(text);
    const Schedule schedule = text_schedule(program).value();
    const Result<SimResult> result =
        simulate(program, schedule, assign_memory(program, schedule), toy_machine(), {});
    return result.ok() ? "" : to_text(result.error());
  };
  const std::string advice =
      "\n  no training step does: is a rate of the machine far too low, or a trip count damaged?";
  // 40'000 iterations of 7 s are 78 hours.
  std::string loop = kLoop;
  const std::string four = "{\"n\":\"4\"}";
  loop.replace(loop.find(four), four.size(), "{\"n\":\"40000\"}");
  CHECK(error_of(loop) == "");
  loop.replace(loop.find("40000"), 5, "42000");
  CHECK(error_of(loop) == "toy.hlo: error: the step takes longer than 80 hours" + advice);
  // 400 kB at 2 B/s are 55 hours.
  const std::string copy =
      "HloModule toy, is_scheduled=true\n\nENTRY %main {\n"
      "  %x = f32[100000] parameter(0)\n"
      "  %out = (f32[100000]{0:S(5)}, f32[100000], u32[]) copy-start(%x)\n"
      "  ROOT %out.done = f32[100000]{0:S(5)} copy-done(%out)\n}\n";
  CHECK(error_of(copy) ==
        "toy.hlo: error: 'out' cannot be simulated: task 0 demands what takes above 20 hours" +
            advice);
}

TEST_CASE("what is not known of the streams of host copies is an assumption") {
  const Program copies =
      read_entry(std::string(kParameters) + kOffload + kOffloadDone + "  ROOT %r = () tuple()\n");
  const Program none =
      read_entry(std::string(kParameters) + product("a") + "  ROOT %r = () tuple()\n");
  using Lines = std::vector<std::string>;
  const SimOptions unknown{}, own{.copy_streams = CopyStreams::kDedicated},
      shared{.copy_streams = CopyStreams::kRoundRobin};
  const auto lines = [](const Program& program, const SimOptions& options) {
    Lines all = run(program, toy_machine(), options).assumptions;
    REQUIRE(!all.empty());
    all.erase(all.begin());  // the topology
    return all;
  };
  CHECK(lines(copies, own) == Lines{});
  CHECK(lines(copies, unknown) ==
        Lines{"offloads have a stream and reloads have one, as from jaxlib 0.12 on; 0.11 has "
              "neither (--jaxlib says which it was)"});
  CHECK(lines(copies, shared) ==
        Lines{"host copies take four streams in turn with other asynchronous work, as before "
              "jaxlib 0.12: 0 of 1 have others on theirs"});
  for (const SimOptions& options : {unknown, own, shared}) CHECK(lines(none, options) == Lines{});
}

TEST_CASE("a collective that XLA made synchronous runs where it starts") {
  const std::string text =
      "HloModule toy, is_scheduled=true, num_partitions=2\n\nENTRY %main {\n  %x = f32[4] "
      "parameter(0)\n  %m = bf16[2,2] parameter(1)\n  %g = (f32[4], f32[8]) all-gather-start(%x), "
      "channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}, dimensions={0}, "
      "backend_config={\"collective_backend_config\":{\"is_sync\":IS_SYNC}}\n" +
      product("k") + "  ROOT %d = f32[8] all-gather-done(%g)\n}\n";
  const auto with = [&](const std::string& is_sync) {
    std::string copy = text;
    copy.replace(copy.find("IS_SYNC"), 7, is_sync);
    return run(read_module(copy));
  };
  CHECK(with("false").step.value() == 3);  // beside the product
  CHECK(with("false").exposed_collective.value() == 1);
  CHECK(with("true").step.value() == 5);  // in front of it
  CHECK(with("true").exposed_collective.value() == 3);
  const std::vector<ExposedWait> waits = with("true").exposed;
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].collective);
  CHECK(waits[0].exposed.value() == 3);
  CHECK(waits[0].duration.value() == 3);
  CHECK(cause_of(waits[0]) == "synchronous");
  CHECK(waits[0].explanation == "it runs on the main stream, where nothing runs beside it");
}

TEST_CASE("exposed time follows the link where nothing hides it") {
  const Program program = read_module(kLoop);
  const double normal = run(program).exposed_device_to_host.value();
  HardwareProfile slow = toy_machine();
  slow.link.device_to_host.value = slow.link.device_to_host.value / 2.0;
  HardwareProfile fast = toy_machine();
  fast.link.device_to_host.value = fast.link.device_to_host.value * 100.0;
  fast.link.both_directions.value = fast.link.both_directions.value * 100.0;
  fast.host.memory_bandwidth.value = fast.host.memory_bandwidth.value * 100.0;
  CHECK(run(program, slow).exposed_device_to_host.value() == 4 * (1 + 12 - 2));
  CHECK(run(program, fast).exposed_device_to_host.value() < normal / 100);
}

TEST_CASE("collectives on the main stream, and waits for others, count as exposed") {
  const std::string gather =
      "HloModule toy, is_scheduled=true, num_partitions=2\n\n%g (p: f32[4]) -> f32[8] {\n  %p = "
      "f32[4] parameter(0)\n"
      "  ROOT %all-gather.1 = f32[8] all-gather(%p), channel_id=1, use_global_device_ids=true, "
      "replica_groups={{0,1}}, "
      "dimensions={0}\n}\n\nENTRY %main {\n"
      "  %x = f32[4] parameter(0)\n";
  // 32 B arrive, 16 of them over the fabric at 8 B/s, 1 s of latency: 3 s.
  const SimResult sync =
      run(read_module(gather +
                      "  ROOT %s = f32[8] all-gather(%x), channel_id=1, "
                      "use_global_device_ids=true, replica_groups={{0,1}}, dimensions={0}\n}\n"));
  CHECK(sync.step.value() == 3);
  CHECK(sync.exposed_collective.value() == 3);
  const SimResult async = run(read_module(
      gather +
      "  %m = bf16[2,2] parameter(1)\n  %a = ((f32[4]), f32[8]) async-start(%x), calls=%g\n" +
      product("k") + "  ROOT %d = f32[8] async-done(%a)\n}\n"));
  CHECK(async.step.value() == 3);
  CHECK(async.exposed_collective.value() == 1);
  CHECK(async.collective_busy.value() == 3);
}

TEST_CASE("a synchronous copy to the host blocks the main stream on the copy's stream") {
  const Program program = read_entry(std::string(kParameters) + "  %c = f32[3]{0:S(5)} copy(%x)\n" +
                                     product("a") + "  ROOT %r = () tuple()\n");
  const SimResult result = run(program);
  CHECK(result.step.value() == 9);
  CHECK(result.exposed_device_to_host.value() == 7);
}

TEST_CASE("same input, same result") {
  const Program program = read_module(kLoop);
  const SimResult a = run(program);
  const SimResult b = run(program);
  CHECK(a.step == b.step);
  CHECK(a.exposed.size() == b.exposed.size());
}

}  // namespace
}  // namespace spillway
