// A command in parts, as a cluster runs it, and the parts put together.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/cli/run.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::Run;
using testing::run_spillway;

constexpr const char* kQuestion =
    "whatif examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 "
    "--set query_proj=keep,offload,recompute --set mlpwi_0=keep,offload "
    "--flag xla_gpu_memory_limit_slop_factor=90 --json";

TEST_CASE("the parts put together are the answer of one run, to the byte") {
  const testing::TemporaryFolder folder;
  const std::string whole = run_spillway(kQuestion).out;
  for (const int count : {1, 2, 5, 13}) {
    CAPTURE(count);
    std::string files;
    for (int index = count; index >= 1; --index) {
      const std::string path = folder.path("part" + std::to_string(index));
      const Run part = run_spillway(std::string(kQuestion) + " --shard " + std::to_string(index) +
                                    "/" + std::to_string(count));
      REQUIRE(part.exit_code == 0);
      std::ofstream(path) << part.out;
      files += " " + path;
    }
    const Run merged = run_spillway("merge" + files);
    CHECK(merged.exit_code == 0);
    CHECK(merged.out == whole);
  }
}

TEST_CASE("a part is a number of a number, and for scripts") {
  for (const char* shard : {"0/2", "3/2", "1", "1/", "/2", "1/0", "a/b", "1/2/3", "-1/2"}) {
    CAPTURE(shard);
    testing::check_refused(std::string(kQuestion) + " --shard " + shard, 2,
                           "error: --shard '" + std::string(shard) +
                               "' is no part of a whole\n  for example --shard 1/8, the first of "
                               "eight\n");
  }
  testing::check_refused(
      "whatif examples/jax/dumps/keep --hw gb200 --set r1=offload --shard 1/2", 2,
      "error: parts of an answer are for merge, which reads JSON\n  add --json\n");
}

}  // namespace
}  // namespace spillway
