// spillway compare, as continuous integration calls it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run.h"

namespace spillway {
namespace {

using testing::run_spillway;

const std::string kKeep = "examples/jax/dumps/keep";
const std::string kOffload = "examples/jax/dumps/offload_qkv";

TEST_CASE("the exit code says whether the peak grew by more than allowed") {
  struct Row {
    std::string arguments;
    int exit_code;
  };
  const Row rows[] = {
      {kOffload + " " + kKeep, 0},
      {kOffload + " " + kKeep + " --fail-if-peak-grows 1%", 1},
      {kOffload + " " + kKeep + " --fail-if-peak-grows 1% --json", 1},
      {kOffload + " " + kKeep + " --fail-if-peak-grows 1000%", 0},
      {kKeep + " " + kOffload + " --fail-if-peak-grows 0%", 0},
      {kKeep + " " + kKeep + " --fail-if-peak-grows 0", 0},
      {kKeep + " " + kKeep + " --fail-if-peak-grows=-1%", 2},
      {kKeep + " " + kKeep + " --fail-if-peak-grows one", 2},
      {kKeep + " " + kKeep + " --fail-if-peak-grows nan", 2},
      {kKeep, 2},
      {kKeep + " nowhere", 3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const auto run = run_spillway("compare " + row.arguments);
    CHECK(run.exit_code == row.exit_code);
    CHECK(run.out.empty() == (row.exit_code > 1));
    CHECK(run.err.empty() == (row.exit_code <= 1));
  }
}

TEST_CASE("a program differs from itself in nothing") {
  const auto json =
      nlohmann::json::parse(run_spillway("compare " + kKeep + " " + kKeep + " --json").out);
  CHECK(json["schema"] == "spillway.compare/1");
  CHECK(json["growth_percent"] == 0);
  CHECK(json["same_placement"] == true);
  for (const char* list : {"buffers", "host_arrays", "offloads", "reloads", "clones"})
    for (const char* side : {"only_first", "only_second"}) {
      CAPTURE(std::string(list) + side);
      CHECK(json[list][side].is_array());
      CHECK(json[list][side].empty());
    }
}

TEST_CASE("an offload shows as a moved stack, host arrays and copies") {
  const auto json = nlohmann::json::parse(
      run_spillway("compare " + kKeep + " " + kOffload + " --names " + kKeep + "/names.json --json")
          .out);
  CHECK(json["same_placement"] == false);
  std::int64_t offloaded = 0;
  for (const auto& copy : json["offloads"]["only_second"])
    offloaded += copy["bytes"].get<std::int64_t>() * copy["count"].get<std::int64_t>();
  CHECK(offloaded > 0);
  CHECK(json["d2h_bytes_per_step"] == nlohmann::json::array({0, offloaded}));
  std::int64_t on_host = 0;
  for (const auto& array : json["host_arrays"]["only_second"])
    on_host += array["bytes"].get<std::int64_t>() * array["count"].get<std::int64_t>();
  CHECK(json["host_bytes"] == nlohmann::json::array({0, on_host}));
  for (const auto& residual : json["residuals"]) {
    CAPTURE(residual.dump());
    CHECK(residual["first"] != residual["second"]);
  }
  CHECK(!json["residuals"].empty());
}

}  // namespace
}  // namespace spillway
