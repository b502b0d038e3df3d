// What goes wrong on the command line: nothing on stdout, one message, the right exit code.
#include <doctest/doctest.h>

#include <string_view>

#include "tests/cli/run.h"

namespace spillway {
namespace {

using testing::Run;
using testing::run_spillway;

TEST_CASE("mistakes have one message and a code") {
  struct Row {
    const char* arguments;
    int exit_code;
    std::string_view message;
  };
  const Row rows[] = {
      {"", 2, "A subcommand is required\nRun with --help for more information.\n"},
      {"inspect", 2, "PROGRAM is required\nRun with --help for more information.\n"},
      {"inspect README.md --colour", 2,
       "The following argument was not expected: --colour\nRun with --help for more "
       "information.\n"},
      {"simulate examples/jax/dumps/keep", 2,
       "--hw is required\nRun with --help for more information.\n"},
      {"inspect nowhere.txt", 3,
       "nowhere.txt: error: cannot be opened: No such file or directory\n"},
      {"inspect README.md", 3,
       "README.md:1:1: error: expected 'HloModule'\n   1 | # Spillway\n     | ^ this does not look "
       "like HLO text\n"},
      {"inspect docs", 3,
       "docs: error: holds no *after_optimizations.txt or .hlo.pb\n  dump with XLA_FLAGS=\"--xla_dump_to=DIR "
       "--xla_dump_hlo_as_text\"\n"},
      {"inspect examples/jax/dumps/keep --names README.md", 3,
       "README.md:1: error: is not JSON\n  the names sidecar is written by python/spillway_jax\n"},
      {"simulate examples/jax/dumps/keep --hw gb200 --topology 3", 2,
       "error: --topology '3' is not hosts x GPUs\n  for example --topology 32x4\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --hbm-limit 60", 2,
       "error: --hbm-limit '60' needs a unit\n  for example 60GiB\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --hbm-limit 0GiB", 2,
       "error: --hbm-limit '0GiB' must be above zero\n  for example 60GiB\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Run run = run_spillway(row.arguments);
    CHECK(run.exit_code == row.exit_code);
    CHECK(run.out == "");
    CHECK(run.err == row.message);
  }
}

TEST_CASE("an unknown machine is answered with those known") {
  const Run run = run_spillway("simulate examples/jax/dumps/keep --hw gb2000");
  CHECK(run.exit_code == 2);
  CHECK(run.out == "");
  CHECK(run.err.find("gb200") != std::string::npos);
}

TEST_CASE("help and version are answers") {
  for (const char* arguments : {"--help", "plan --help", "--version"}) {
    CAPTURE(arguments);
    const Run run = run_spillway(arguments);
    CHECK(run.exit_code == 0);
    CHECK_FALSE(run.out.empty());
    CHECK(run.err == "");
  }
}

TEST_CASE("a plan for which nothing fits answers no") {
  const Run run = run_spillway(
      "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 "
      "--hbm-limit 10GiB");
  CHECK(run.exit_code == 1);
  CHECK(run.out.find("NOTHING FITS") != std::string::npos);
  CHECK(run.err == "");
}

}  // namespace
}  // namespace spillway
