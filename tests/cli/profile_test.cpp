// `simulate --profile` from the command line.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/xplane_fixture.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

constexpr const char* kSimulate = "simulate examples/jax/dumps/offload_qkv --hw gb200 ";

/// A run of the example's offloads, 4 ms each, and of a kernel that the program lacks.
std::string write_run(const TemporaryFolder& folder, const nlohmann::json& simulated) {
  pb::XSpace space;
  testing::PlaneFixture plane(space, "/device:GPU:0");
  pb::XLine& copies = plane.line("Stream #14(MemcpyD2H)", 0);
  std::int64_t at = 0;
  for (const auto& use : simulated["streams"]) {
    if (use["stream"] != "memcpy_d2h_stream") continue;
    pb::XEvent& event = plane.event(copies, "MemcpyD2H", at, 4000000);
    plane.stat(event, "hlo_op", use["instruction"]);
    plane.stat(event, "hlo_module", "jit_train_step");
    plane.stat(event, "memcpy_details",
               "kind_src:device kind_dst:pinned size:805306368 dest:0 async:1", false);
    at += 5000000;
  }
  plane.kernel(plane.line("Stream #13(Compute)", 0), "k", "of_another.1", 0, 1000,
               "jit_train_step");
  return folder.write("host.xplane.pb", space.SerializeAsString());
}

TEST_CASE("a run stands behind the answer, and in its JSON") {
  const TemporaryFolder folder;
  const Run plain = run_spillway(kSimulate + std::string("--json"));
  const auto simulated = nlohmann::json::parse(plain.out);
  const std::string path = write_run(folder, simulated);
  const Run run = run_spillway(kSimulate + ("--json --profile " + path));
  REQUIRE(run.exit_code == 0);
  auto json = nlohmann::json::parse(run.out);
  const auto& measured = json["measured"];
  CHECK(measured["format"] == "XPlane");
  REQUIRE(measured["instructions"].size() > 0);
  double last = 1e9;
  for (const auto& row : measured["instructions"]) {
    CHECK(row["class"] == "offloads");
    CHECK(row["measured_seconds"] == doctest::Approx(0.004));
    CHECK(row["bytes"] > 0);
    const double lost = std::abs(row["lost_seconds"].get<double>());
    CHECK(lost <= last);
    last = lost;
  }
  CHECK(measured["unmatched_names"] == 1);
  CHECK(measured["unmeasured_instructions"] > 10);
  // All else is as without it.
  json.erase("measured");
  CHECK(nlohmann::ordered_json(json) == nlohmann::ordered_json(simulated));
  const Run text = run_spillway(kSimulate + ("--profile " + path));
  CHECK(text.out.starts_with(run_spillway(kSimulate).out));
  CHECK(text.out.find("Where the model is off, most time lost in a step first") !=
        std::string::npos);
}

TEST_CASE("what is no run, and what does not go together") {
  const TemporaryFolder folder;
  const std::string none = folder.write("none", "nothing of the kind");
  const Run run = run_spillway(kSimulate + ("--profile " + none));
  CHECK(run.exit_code == 3);
  CHECK(run.out.empty());
  CHECK(run.err.starts_with(none + ": error: is no profile of a run that is known\n"));
  CHECK(run_spillway(kSimulate + ("--explain query_proj --profile " + none)).exit_code == 2);
}

}  // namespace
}  // namespace spillway
