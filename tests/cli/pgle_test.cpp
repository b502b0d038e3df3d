// plan --pgle: what it writes, and that it writes all of it or nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::check_refused;
using testing::read_text;
using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

constexpr const char* kPlan = "plan examples/jax/dumps/offload_qkv --hw gb200 --pgle ";

TEST_CASE("a profile of a real program") {
  const TemporaryFolder folder;
  const std::string path = folder.write("step.pbtxt", "what was there before");
  const Run run = run_spillway(kPlan + path + " --json");
  CHECK(run.exit_code == 0);
  const std::string text = read_text(path);
  check_golden("plan/offload_qkv.pbtxt", text);
  const auto pgle = nlohmann::json::parse(run.out)["pgle"];
  CHECK(pgle["path"] == path);
  CHECK(pgle["host_copies"] == 6);  // q, k and v, each way
  CHECK(pgle["costs"] == std::ranges::count(text, '\n') - std::ranges::count(text, '#'));
  // The plan moves more than was compiled, so the names are of another program.
  CHECK(pgle["recommended"] == false);
  CHECK(pgle["flags"].empty());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path("")),
                      std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("a file that cannot be written, and one XLA would not read") {
  const TemporaryFolder folder;
  check_refused(kPlan + folder.path("nowhere/step.pbtxt"), 74,
                folder.path("nowhere/step.pbtxt") +
                    ": error: cannot be written: No such file or directory\n");
  std::filesystem::create_directory(folder.path("folder.pbtxt"));
  check_refused(kPlan + folder.path("folder.pbtxt"), 74,
                folder.path("folder.pbtxt") + ": error: cannot be written: Is a directory\n");
  CHECK(std::filesystem::is_empty(folder.path("folder.pbtxt")));
  check_refused(
      kPlan + folder.path("step.txt"), 2,
      "--pgle: must end in .pbtxt: it is text, which XLA reads by that name only\nRun with "
      "--help for more information.\n");
  check_refused(kPlan + folder.path("step.pbtxt") + " --explain query_proj", 2,
                "--explain excludes --pgle\nRun with --help for more information.\n");
}

}  // namespace
}  // namespace spillway
