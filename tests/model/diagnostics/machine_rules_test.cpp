// Rules about the machine that a program is meant for, and about versions of jaxlib.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::Save;
using testing::ToyScan;
using testing::what_of;

constexpr testing::ToyStack kOffloaded{Save::kAsync, Fetch::kAsync, true};
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
  CHECK(find_diagnostic(program, "above-pool")->advice ==
        "XLA_PYTHON_CLIENT_MEM_FRACTION=0.80 would hold it.");
  program.memory.totals.total_device = Bytes(96 * kGibibyte);
  CHECK(find_diagnostic(program, "above-pool")
            ->advice.starts_with("No fraction holds it beside the 5.00 GiB"));
  program.memory.totals.total_device = Bytes(75 * kGibibyte);
  CHECK(what_of(program, "above-pool") == "");
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
}

TEST_CASE("devices that XLA has no table of matrix products for") {
  Inspected moved = inspect(ToyScan{.a = kOffloaded}.text());
  HardwareProfile hardware;
  moved.hardware = &hardware;
  for (const char* name : {"NVIDIA GB200", "NVIDIA GB300", "NVIDIA B300"}) {
    hardware.device.xla_name = name;
    CHECK(what_of(moved, "fixed-costs").find(name) != std::string::npos);
  }
  hardware.device.xla_name = "NVIDIA H100 80GB HBM3";
  CHECK(what_of(moved, "fixed-costs") == "");
  Inspected kept = inspect(ToyScan{}.text());
  hardware.device.xla_name = "NVIDIA GB200";
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
      "It recomputes work that no policy asked for, and counts pinned host buffers as HBM.";
  CHECK(why() == general);
  cloned.dump.compiled_for_hbm = Bytes(100 * kGibibyte);
  cloned.memory.totals = {};
  cloned.memory.totals.total_device = Bytes(70 * kGibibyte);
  cloned.memory.totals.host_temp = Bytes(10 * kGibibyte);
  CHECK(why() == general +
                     " Here its limit is 76.00 GiB: the device needs 70.00 GiB and would fit, with "
                     "10.00 GiB of host memory counted too it does not.");
  cloned.memory.totals.host_temp = Bytes(5 * kGibibyte);
  CHECK(why() == general);
}

TEST_CASE("hazards speak of their versions and programs only") {
  Inspected moved = inspect(ToyScan{.a = kOffloaded}.text());
  const auto known_of = [&](const char* version) {
    moved.jaxlib = parse_jaxlib_version(version);
    const auto found = find_diagnostic(moved, "known-hazards");
    return found ? found->what : "";
  };
  CHECK(known_of("none") == "");
  CHECK(known_of("0.11.0").starts_with("with jaxlib 0.11.0, (1) gradients can be wrong"));
  CHECK(
      find_diagnostic(moved, "known-hazards")->why.starts_with("Known from (1) openxla/xla#46231"));
  CHECK(known_of("0.11.2").find("gradients can be wrong") == std::string::npos);
  CHECK(known_of("0.9.2").find("gradients can be wrong") == std::string::npos);
  // State, conditionals and pipelined copies are not in this program.
  for (const char* version : {"0.4.35", "0.8.2", "0.12.0.1"})
    CHECK(known_of(version).find("optimizer state") == std::string::npos);
  CHECK(known_of("0.12.0.1").find("O1") == std::string::npos);
  // Nothing on the host: nothing to fear.
  Inspected kept = inspect(ToyScan{}.text());
  kept.jaxlib = parse_jaxlib_version("0.11.0");
  CHECK(what_of(kept, "known-hazards") == "");
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
  for (const char* wrong : {"", "11", "x", "0.x", "-1.2", "0.11 beta", "99999999999.1"})
    CHECK(text(wrong) == "none");
  CHECK(*parse_jaxlib_version("0.9.2") < *parse_jaxlib_version("0.10.0"));
  CHECK(*parse_jaxlib_version("0.12.0") < *parse_jaxlib_version("0.12.0.1"));
}

}  // namespace
}  // namespace spillway
