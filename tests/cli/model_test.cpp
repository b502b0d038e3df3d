// A model's configuration in the place of PROGRAM.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run.h"

namespace spillway {
namespace {

using nlohmann::json;
using testing::Run;
using testing::run_spillway;

TEST_CASE("a configuration without what it needs is refused") {
  const std::pair<const char*, const char*> rows[] = {
      {"whatif examples/models/llama3.1-8b.yml --hw gb200",
       "error: a model's configuration does not say on how many devices it runs\n"
       "  for example --devices 8\n"},
      {"plan examples/models/qwen3-8b.json --hw gb200 --devices 8",
       "error: a config.json says nothing about the run\n"
       "  give --settings RUN.yml with per_device_batch_size, max_target_length and what else "
       "MaxText's keys have to say\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --devices 8",
       "error: --devices and --settings are for a model's configuration\n"
       "  a compiled program says itself how many devices it is for\n"},
      {"inspect examples/models/llama3.1-8b.yml --devices 8",
       "error: what a configuration compiles to hangs on the machine\n  for example --hw gb200\n"},
      {"whatif examples/models/llama3.1-8b.yml --hw gb200 --devices 8 --accumulation 2",
       "error: --second, --batch, --seq and --accumulation are for compiled programs\n"
       "  change the configuration instead\n"},
  };
  for (const auto& [arguments, message] : rows) {
    CAPTURE(arguments);
    const Run run = run_spillway(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err == message);
  }
}

// The case without --set is what the configuration asks for: layer input and q, k, v on the host.
TEST_CASE("whatif of a configuration is its policy, and others on request") {
  const Run own =
      run_spillway("whatif examples/models/llama3.1-8b.yml --devices 8 --hw gb200 --json");
  REQUIRE(own.exit_code == 0);
  const json answer = json::parse(own.out);
  REQUIRE(answer["cases"].size() == 1);
  const std::int64_t layers = 32, tokens = 2 * 8192;
  CHECK(answer["cases"][0]["host_bytes"] == 2 * layers * tokens * (4096 + 4096 + 1024 + 1024));
  CHECK(answer["cases"][0]["policy"]["query_proj"] == "offload");
  CHECK(answer["cases"][0]["policy"]["mlpwi_0"] == "recompute");
  const Run other = run_spillway(
      "whatif examples/models/llama3.1-8b.yml --devices 8 --hw gb200 --json --set "
      "query_proj=recompute");
  const json less = json::parse(other.out);
  CHECK(less["cases"].back()["host_bytes"] == 2 * layers * tokens * (4096 + 1024 + 1024));
}

}  // namespace
}  // namespace spillway
