// spillway-probe itself, where it was built: what it says of a wrong line, and of a machine without
// a GPU. What it measures needs one: calibration/gpu_check.sh.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/golden.h"

namespace spillway {
namespace {

#ifdef SPILLWAY_PROBE_BINARY

struct Run {
  int exit_code;
  std::string out, err;
};

/// CUDA is told that there is no device, so that a machine with one answers as one without.
Run run_probe(const std::string& arguments) {
  const auto base =
      std::filesystem::temp_directory_path() / ("spillway_probe_" + std::to_string(getpid()));
  const std::string out = base.string() + ".out", err = base.string() + ".err";
  const int status = std::system(("CUDA_VISIBLE_DEVICES=-1 '" SPILLWAY_PROBE_BINARY "' " +
                                  arguments + " >'" + out + "' 2>'" + err + "' </dev/null")
                                     .c_str());
  Run run{WEXITSTATUS(status), testing::read_text(out), testing::read_text(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return run;
}

TEST_CASE("without a GPU it says so, kindly") {
  const Run run = run_probe("--out nowhere.json");
  CHECK(run.exit_code == 1);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("nothing to measure: there is no NVIDIA "));
  CHECK(run.err.ends_with("nvbandwidth's output will do, too.\n"));
}

TEST_CASE("a wrong line is the user's") {
  struct Row {
    const char* arguments;
    const char* err;
  };
  const Row rows[] = {
      {"--fast", "error: '--fast' is not an option: see spillway-probe --help\n"},
      {"--out", "error: '--out' needs a value\n"},
      {"--seconds 0", "error: --seconds is '0': a whole number from 1 up\n"},
      {"--seconds 1e3", "error: --seconds is '1e3': a whole number from 1 up\n"},
      {"--largest 8", "error: --largest is '8': a whole number from 16 to 65536\n"}};
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Run run = run_probe(row.arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.err == row.err);
  }
}

TEST_CASE("help is an answer") {
  const Run run = run_probe("--help");
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("spillway-probe [--out FILE]"));
}

#else

TEST_CASE("spillway-probe was not built: no CUDA toolkit") {
  MESSAGE("skipped: spillway-probe was not built");
}

#endif

}  // namespace
}  // namespace spillway
