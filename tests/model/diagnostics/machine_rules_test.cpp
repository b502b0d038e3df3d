// Rules about the machine that a program is meant for, and about versions of jaxlib.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::kOffloaded;
using testing::ToyScan;
using testing::what_of;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

/// 100 GiB of HBM, of which the pool is three quarters, and 5 GiB that the runtime needs.
Budget toy_budget() {
  Budget budget;
  budget.hbm = Bytes(100 * kGibibyte);
  budget.reserve = Bytes(5 * kGibibyte);
  budget.fraction = 0.75;
  budget.pool = Bytes(75 * kGibibyte);
  return budget;
}

TEST_CASE("a program that the pool does not hold") {
  Inspected program = inspect(ToyScan{}.text());
  const Budget budget = toy_budget();
  program.memory.totals.total_device = Bytes(80 * kGibibyte);
  CHECK(what_of(program, "above-pool") == "");  // no machine, no word
  program.budget = &budget;
  CHECK(what_of(program, "above-pool") ==
        "the program needs 80.00 GiB of HBM, 5.00 GiB more than the pool of 75.00 GiB (0.75 of "
        "100.00 GiB).");
  const auto advice = [&](std::int64_t gibibytes) {
    program.memory.totals.total_device = Bytes(gibibytes * kGibibyte);
    return find_diagnostic(program, "above-pool")->advice;
  };
  CHECK(advice(80) == "XLA_PYTHON_CLIENT_MEM_FRACTION=0.80 just holds it, 0.82 with some room.");
  CHECK(advice(94) == "XLA_PYTHON_CLIENT_MEM_FRACTION=0.94 just holds it.");
  // The same verdict as a plan's: 0.96 leaves less than the 5 GiB of the runtime.
  CHECK(
      advice(96).starts_with("XLA_PYTHON_CLIENT_MEM_FRACTION=0.96 would hold it, but leaves less "
                             "than the 5.00 GiB"));
  CHECK(advice(101).starts_with("No pool of this device holds it"));
  program.memory.totals.total_device = Bytes(75 * kGibibyte);
  CHECK(what_of(program, "above-pool") == "");
}

TEST_CASE("more on the host than there is") {
  Inspected program = inspect(ToyScan{}.text());
  Budget budget = toy_budget();
  budget.host = Bytes(10 * kGibibyte);
  budget.host_origin = "the limit given";
  program.budget = &budget;
  program.memory.totals.host_temp = Bytes(10 * kGibibyte);
  CHECK(what_of(program, "above-host") == "");
  program.memory.totals.host_temp = Bytes(12 * kGibibyte);
  CHECK(what_of(program, "above-host") ==
        "the step needs 12.00 GiB of pinned host memory on each device, 2.00 GiB more than the "
        "10.00 GiB there are.");
  CHECK(find_diagnostic(program, "above-host")->why == "That is the limit given.");
}

TEST_CASE("a pool that leaves the runtime too little") {
  Inspected program = inspect(ToyScan{}.text());
  Budget budget = toy_budget();
  program.budget = &budget;
  budget.pool = Bytes(95 * kGibibyte);
  CHECK(what_of(program, "pool-too-large") == "");
  budget.pool = Bytes(97 * kGibibyte);
  budget.fraction = 0.97;
  CHECK(what_of(program, "pool-too-large") ==
        "a pool of 97.00 GiB (0.97 of 100.00 GiB) leaves 3.00 GiB beside it, and the runtime needs "
        "5.00 GiB.");
}

TEST_CASE("a program that was compiled for another device") {
  Inspected program = inspect(ToyScan{.a = kOffloaded}.text());
  HardwareProfile hardware;
  hardware.device.xla_name = "NVIDIA GB200";
  hardware.device.compute_capability = "10.0";
  const Budget budget = toy_budget();
  program.hardware = &hardware;
  program.budget = &budget;
  program.memory.totals.temp = Bytes(50 * kGibibyte);
  const auto said = [&](const char* path, const char* code) {
    program.program.path = path;
    return what_of(program, code);
  };
  const char* kOther = "dump/jit_step.sm_9.0a_gpu_after_optimizations.txt.gz";
  const char* kSame = "dump/jit_step.sm_10.0a_gpu_after_optimizations.txt";
  CHECK(said(kOther, "other-device") ==
        "the program was compiled for compute capability 9.0, and NVIDIA GB200 has 10.0.");
  CHECK(said(kSame, "other-device") == "");
  CHECK(said("step.txt", "other-device") == "");
  // What XLA believed of the machine is nobody's business then.
  for (const char* code : {"fixed-costs", "other-limit-when-live"}) {
    CAPTURE(code);
    CHECK(said(kSame, code) != "");
    CHECK(said(kOther, code) == "");
  }
}

TEST_CASE("one block with little to spare") {
  Inspected program = inspect(ToyScan{}.text());
  const Budget budget = toy_budget();
  program.budget = &budget;
  const auto with = [&](std::int64_t total) {
    program.memory.totals.total_device = Bytes(total);
    program.memory.totals.largest_allocation = Bytes(60 * kGibibyte);
    return what_of(program, "tight-block");
  };
  CHECK(with(74 * kGibibyte) ==
        "the largest block, 60.00 GiB, must be free in one piece, and the pool has 1.00 GiB to "
        "spare beside what the program holds.");
  CHECK(with(73 * kGibibyte) == "");
  CHECK(with(76 * kGibibyte) == "");  // above-pool says it
  with(74 * kGibibyte);
  CHECK(find_diagnostic(program, "tight-block")->advice ==
        "A larger pool leaves more room: XLA_PYTHON_CLIENT_MEM_FRACTION=0.77.");
}

TEST_CASE("ahead of time and live the compiler has other limits") {
  Inspected program = inspect(ToyScan{}.text());
  const Budget budget = toy_budget();
  program.budget = &budget;
  const auto with = [&](std::int64_t temp) {
    program.memory.totals = {};
    program.memory.totals.temp = Bytes(temp);
    return what_of(program, "other-limit-when-live");
  };
  // 0.95 of 80 and of 75 GiB; the scheduler looks at memory above half of the smaller.
  CHECK(with(36 * kGibibyte) ==
        "compiled ahead of time the scheduler aims to stay below 76.00 GiB of temporaries, on a "
        "live device below 71.25 GiB; the program has 36.00 GiB.");
  CHECK(with(35 * kGibibyte) == "");
  CHECK(with(76 * kGibibyte) != "");
  CHECK(with(77 * kGibibyte) == "");  // above both it always looks
}

TEST_CASE("devices that XLA has no table of matrix products for") {
  Inspected moved = inspect(ToyScan{.a = kOffloaded}.text());
  HardwareProfile hardware;
  moved.hardware = &hardware;
  const auto become = [&](const char* name, const char* capability) {
    hardware.device.xla_name = name;
    hardware.device.compute_capability = capability;
  };
  const std::pair<const char*, const char*> lacking[] = {
      {"NVIDIA GB200", "10.0"}, {"NVIDIA GB300", "10.3"}, {"NVIDIA B300", "10.3"}};
  for (const auto& [name, capability] : lacking) {
    become(name, capability);
    CHECK(what_of(moved, "fixed-costs").find(name) != std::string::npos);
  }
  become("NVIDIA H100 80GB HBM3", "9.0");
  CHECK(what_of(moved, "fixed-costs") == "");
  become("NVIDIA A100-SXM4-80GB", "8.0");  // no latency hiding, no costs
  CHECK(what_of(moved, "fixed-costs") == "");
  Inspected kept = inspect(ToyScan{}.text());
  become("NVIDIA GB200", "10.0");
  kept.hardware = &hardware;
  CHECK(what_of(kept, "fixed-costs") == "");
}

TEST_CASE("clones by XLA's rematerialisation, and what its limit made of host memory") {
  const std::string end = "ROOT %end = f32[64]{0} negate(%gradient)";
  Inspected cloned =
      inspect(testing::replaced(ToyScan{.a = kOffloaded, .b = kOffloaded}.text(), end,
                                "%sum.remat = f32[64]{0} tanh(%gradient)\n  " + end));
  const auto why = [&] { return find_diagnostic(cloned, "xla-remat-clones")->why; };
  const std::string general =
      "It recomputes work that no policy asked for, to stay below the compiler's limit.";
  const std::string counts = " It counts pinned host buffers as HBM.";
  CHECK(why() == general + counts);
  cloned.dump.compiled_for_hbm = Bytes(100 * kGibibyte);
  const auto with = [&](std::int64_t device, std::int64_t host) {
    cloned.memory.totals = {};
    cloned.memory.totals.total_device = Bytes(device * kGibibyte);
    cloned.memory.totals.host_temp = Bytes(host * kGibibyte);
    return why();
  };
  CHECK(with(70, 10) == general + counts +
                            " Here the limit is 76.00 GiB and the device needs 70.00 GiB: that "
                            "would fit, and with 10.00 GiB of host memory it does not.");
  CHECK(with(70, 5) == general + counts);
  CHECK(with(70, 0) == general);
  CHECK(with(80, 10) == general +
                            " Here the limit is 76.00 GiB and the device needs 80.00 GiB even "
                            "so.");
}

std::string hazards_of(Inspected inspected, const char* version) {
  inspected.jaxlib = parse_jaxlib_version(version);
  return what_of(inspected, "known-hazards");
}

TEST_CASE("each hazard speaks of its versions, and of programs that it is about") {
  const std::string end = "ROOT %end = f32[64]{0} negate(%gradient)";
  const std::string offloaded = ToyScan{.a = kOffloaded}.text();
  const auto state = [] {
    return inspect(
        "ENTRY %main {\n  %h = f32[64]{0:S(5)} parameter(0)\n  ROOT %r = f32[64]{0} "
        "copy(%h)\n}\n");
  };
  const auto conditional = [&](bool in_loop) {
    const std::string branch =
        "%same {\n  %y = f32[64]{0} parameter(0)\n  ROOT %yn = f32[64]{0} negate(%y)\n}\n";
    const std::string pick =
        "  %pick = pred[] constant(true)\n  %either = f32[64]{0} conditional(%pick, %OF, %OF), "
        "true_computation=%same, false_computation=%same\n";
    std::string text = branch + ToyScan{}.text();
    const std::string place =
        in_loop ? "  %three = s32[] constant(3)\n" : "  %nothing = f32[] constant(0)\n";
    std::string here = pick;
    for (int k = 0; k < 2; ++k) here = testing::replaced(here, "%OF", in_loop ? "%g" : "%x0");
    return inspect(testing::replaced(text, place, place + here));
  };
  const auto exchange = [&] {
    return inspect(
        testing::replaced(ToyScan{}.text(), end,
                          "%moved = f32[64]{0} all-to-all(%gradient), dimensions={0}\n  " + end));
  };
  Inspected near_limit = inspect(offloaded);
  near_limit.dump.compiled_for_hbm = Bytes(100 * kGibibyte);
  near_limit.memory.totals = {};
  near_limit.memory.totals.total_device = Bytes(70 * kGibibyte);
  near_limit.memory.totals.host_temp = Bytes(10 * kGibibyte);
  Inspected below_limit = near_limit;
  below_limit.memory.totals.host_temp = Bytes(5 * kGibibyte);
  struct Row {
    std::string name;
    Inspected concerned, other;
    const char *version, *before, *behind;
    const char* says;
  };
  const Row rows[] = {
      {"wrong layers", inspect(offloaded), inspect(ToyScan{}.text()), "0.11.0", "0.9.2", "0.11.2",
       "gradients can be wrong"},
      {"counted by the memory scheduler", inspect(offloaded), inspect(ToyScan{}.text()), "0.5.0",
       "0.3.9", "0.5.1", "counts buffers in pinned host memory"},
      {"a limit that wraps around", state(), inspect(ToyScan{}.text()), "0.5.1", "0.3.9", "0.5.2",
       "wrap around"},
      {"state on the host", state(), inspect(offloaded), "0.4.35", "0.4.34", "0.4.36",
       "optimizer state in pinned host memory fails"},
      {"copies of the carry", conditional(true), conditional(false), "0.8.2", "0.8.1", "0.9.2",
       "a conditional in a scan"},
      {"experts", exchange(), inspect(ToyScan{}.text()), "0.9.2", "0.8.0", "0.10.0",
       "mixture-of-experts"},
      {"pipelined copies",
       inspect(ToyScan{.a = kOffloaded, .b = kOffloaded, .pipelined = true}.text()),
       inspect(offloaded), "0.12.0.1", "0.10.2", "0.13.0", "optimisation level"},
      {"above the limit with the host", near_limit, below_limit, "0.12.0", "0.8.1", "0.13.0",
       "above its limit"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto says = [&](const Inspected& program, const char* version) {
      return hazards_of(program, version).find(row.says) != std::string::npos;
    };
    CHECK(says(row.concerned, row.version));
    CHECK_FALSE(says(row.concerned, row.before));
    CHECK_FALSE(says(row.concerned, row.behind));
    CHECK_FALSE(says(row.other, row.version));
    CHECK(hazards_of(row.concerned, "") == "");
  }
}

TEST_CASE("versions of jaxlib") {
  const auto text = [](const char* version) {
    const auto parsed = parse_jaxlib_version(version);
    return parsed ? to_string(*parsed) : "none";
  };
  CHECK(text("0.11.2") == "0.11.2");
  CHECK(text("0.12.0.1") == "0.12.0.1");
  CHECK(text("0.11") == "0.11.0");
  CHECK(text("0.11.0.dev20260801") == "0.11.0");
  CHECK(text("0.11.0rc1") == "0.11.0");
  CHECK(text("0.11.0a1") == "0.11.0");
  CHECK(text("0.11.0+cuda13") == "0.11.0");
  for (const char* wrong : {"", "11", "x", "0.x", "-1.2", "0.11 beta", "99999999999.1", "0.11.0-1"})
    CHECK(text(wrong) == "none");
  CHECK(*parse_jaxlib_version("0.9.2") < *parse_jaxlib_version("0.10.0"));
  CHECK(*parse_jaxlib_version("0.12.0") < *parse_jaxlib_version("0.12.0.1"));
}

}  // namespace
}  // namespace spillway
