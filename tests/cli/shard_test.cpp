// A command in parts, as a cluster runs it, and the parts put together.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/cli/run.h"
#include "tests/golden.h"
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

TEST_CASE("parts of different questions are told apart") {
  const testing::TemporaryFolder folder;
  const std::string step =
      "whatif examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 ";
  const std::string sets = "--set query_proj=keep,offload --set mlpwi_1=keep,offload ";
  const auto make = [&](const std::string& command, const std::string& shard,
                        const std::string& file) {
    const Run part = run_spillway(command + " --json --shard " + shard);
    REQUIRE(part.exit_code == 0);
    return folder.write(file, part.out);
  };
  const std::string first = make(step + sets, "1/2", "first");
  const std::string others[] = {
      step + sets + "--topology 8x1",
      step + sets + "--host-limit 5GiB",
      step + sets + "--node-host-limit 5GiB",
      step + sets + "--pageable-copies 2GB/s",
      step + sets + "--flag xla_gpu_enable_latency_hiding_scheduler=false",
      step + "--set query_proj=offload,keep --set mlpwi_1=keep,offload",
      step + "--set key_proj=keep,offload --set mlpwi_1=keep,offload",
  };
  for (const std::string& other : others) {
    CAPTURE(other);
    const std::string second = make(other, "2/2", "second");
    testing::check_refused("merge " + first + " " + second, 3,
                           second + ": error: answers another question than '" + first +
                               "'\n  all parts need the same files and options, in the same "
                               "order\n");
  }
  // The same file by another name is the same.
  const std::string copy =
      folder.write("copy.json", testing::read_text("examples/jax/dumps/keep/names.json"));
  const std::string second = make(
      "whatif examples/jax/dumps/keep --hw gb200 --names " + copy + " " + sets, "2/2", "second");
  CHECK(run_spillway("merge " + first + " " + second).exit_code == 0);
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
