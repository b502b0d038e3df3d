// A module of an earlier stage, without is_scheduled: what it holds can be told, what it costs
// cannot.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

constexpr const char* kBody =
    "\n\nENTRY %main {\n  %a = bf16[8,8]{1,0} parameter(0)\n  ROOT %d = bf16[8,8]{1,0} dot(%a, "
    "%a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";

TEST_CASE("inspect reads an unscheduled module, without memory") {
  const TemporaryFolder folder;
  for (const std::string header : {"HloModule toy", "HloModule toy, is_scheduled=false"}) {
    CAPTURE(header);
    const std::string path = folder.write("step.txt", header + kBody);
    const Run text = run_spillway("inspect " + path);
    CHECK(text.exit_code == 0);
    CHECK(text.err == "");
    CHECK(text.out ==
          "toy  2 instructions in 1 computations, 1 device(s)\n" + path +
              "\n\nMatrix products of a step  1.02 kFLOP   all operations  1.02 kFLOP\n\nWhat to "
              "know\n  warning  not-scheduled\n           the module is not scheduled (no "
              "is_scheduled=true).\n           → memory and time depend on the order XLA chose: "
              "give the …after_optimizations.txt of the\n           dump, not an earlier stage.\n");
    const Run run = run_spillway("inspect --json " + path);
    CHECK(run.exit_code == 0);
    const auto json = nlohmann::json::parse(run.out);
    CHECK(json["program"]["scheduled"] == false);
    CHECK(json["memory"].is_null());
    CHECK(json["transfers"].is_null());
    CHECK(json["dot_flops_per_step"] == 1024);
    CHECK(json["residuals"].empty());
    REQUIRE(json["diagnostics"].size() == 1);
    CHECK(json["diagnostics"][0]["code"] == "not-scheduled");
  }
}

TEST_CASE("simulate and plan refuse an unscheduled module and say what to give") {
  const TemporaryFolder folder;
  const std::string path = folder.write("step.txt", std::string("HloModule toy") + kBody);
  for (const char* command : {"simulate --hw gb200 ", "simulate --hw gb200 --json ",
                              "plan --hw gb200 ", "plan --hw gb200 --explain query "}) {
    CAPTURE(command);
    const Run run = run_spillway(command + path);
    CHECK(run.exit_code == 3);
    CHECK(run.out == "");
    CHECK(run.err ==
          path +
              ": error: the module is not scheduled (no is_scheduled=true)\n  memory and time "
              "depend on the order XLA chose: give the …after_optimizations.txt of the dump, not "
              "an earlier stage\n");
  }
}

TEST_CASE("the same module with an order is simulated and planned") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("step.txt", std::string("HloModule toy, is_scheduled=true") + kBody);
  for (const char* command : {"inspect ", "simulate --hw gb200 ", "plan --hw gb200 "}) {
    CAPTURE(command);
    CHECK(run_spillway(command + path).exit_code == 0);
  }
}

}  // namespace
}  // namespace spillway
