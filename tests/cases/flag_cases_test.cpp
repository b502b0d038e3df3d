// Cases about XLA's flags that users reported, as command lines with the answer that is right.
#include <doctest/doctest.h>

#include <string>

#include "tests/cli/run.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::Run;
using testing::run_spillway;

/// Whether an answer says something, wherever its lines break.
bool holds(const std::string& text, const std::string& part) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  return line.find(part) != std::string::npos;
}

TEST_CASE("C25: a line of flags is answered before XLA ends the process at it") {
  struct Row {
    const char* name;
    const char* arguments;
    int exit_code;
    const char* says;
  };
  const Row rows[] = {
      {"a typo of the kind that was committed",
       "--check=--xla_gpu_enable_latency_hiding_scheduler-false", 1,
       "→ An '=' is missing: --xla_gpu_enable_latency_hiding_scheduler=false."},
      {"gone without notice", "--check=--xla_gpu_enable_triton_softmax_fusion=false", 1,
       "jaxlib 0.12.0.1 has no flag --xla_gpu_enable_triton_softmax_fusion any more (up to "
       "0.5.0)."},
      {"the same where it was there",
       "--check=--xla_gpu_enable_triton_softmax_fusion=true --jaxlib 0.4.31", 0, "Nothing odd."},
      {"renamed", "--check=--xla_gpu_simplify_all_fp_conversions=false", 1,
       "→ In its place: xla_allow_excess_precision, which is on by default."},
      {"not there yet",
       "--check=--xla_gpu_experimental_parallel_collective_overlap_limit=2 --jaxlib 0.4.31", 1,
       "jaxlib 0.4.31 has no flag --xla_gpu_experimental_parallel_collective_overlap_limit yet "
       "(since"},
      {"a default that is recommended everywhere",
       "--check=--xla_gpu_enable_highest_priority_async_stream=true", 0,
       "is what jaxlib 0.12.0.1 does anyway."},
      {"another, with a device", "--check=--xla_gpu_enable_latency_hiding_scheduler=true --hw h100",
       0, "has no effect on your version."},
      {"0.4.35 with latency hiding",
       "--check=--xla_gpu_enable_latency_hiding_scheduler=true --hw h100 --jaxlib 0.4.35", 1,
       "fails a check on overlap"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Run run = run_spillway(std::string("flags ") + row.arguments);
    CHECK(run.exit_code == row.exit_code);
    CAPTURE(run.out);
    CHECK(holds(run.out, row.says));
    CHECK(run.err == "");
    CHECK(holds(run.out, "XLA would not run with these flags.") == (row.exit_code == 1));
  }
}

TEST_CASE("C25: an unknown version is refused") {
  testing::check_refused(
      "flags --jaxlib 0.99.0", 2,
      "error: jaxlib 0.99.0 is not known here: it is newer than 0.12.0.1\n  known "
      "are 0.4.31 to 0.12.0.1\n");
  testing::check_refused(
      "plan examples/jax/dumps/keep --hw gb200 --jaxlib 0.99.0", 2,
      "error: jaxlib 0.99.0 is not known here: it is newer than 0.12.0.1\n  known "
      "are 0.4.31 to 0.12.0.1\n");
}

TEST_CASE("C25: a plan prints only flags that differ from the defaults of the version") {
  const std::string plan =
      "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 ";
  const Run now = run_spillway(plan);
  CHECK(holds(now.out, "--xla_disable_hlo_passes=rematerialization"));
  CHECK(holds(now.out, "--xla_disable_automatic_host_compute_offload=true"));
  CHECK_FALSE(holds(now.out, "latency_hiding_scheduler=true"));
  const Run old = run_spillway(plan + "--hbm-limit 30GiB --jaxlib 0.7.0");
  CHECK(holds(old.out, "XLA flags for jaxlib 0.7.0"));
  CHECK(holds(old.out, "--xla_disable_hlo_passes=rematerialization"));
  CHECK_FALSE(holds(old.out, "--xla_disable_automatic_host_compute_offload"));
}

TEST_CASE("C25: the flags of the user are looked at where they are given, and only there") {
  const std::string wrong = "--xla_gpu_enable_latency_hidng_scheduler=true";
  const std::string meant = "Did you mean --xla_gpu_enable_latency_hiding_scheduler?";
  for (const std::string command :
       {"plan examples/jax/dumps/keep --hw gb200 ", "inspect examples/jax/dumps/keep "}) {
    CAPTURE(command);
    CHECK(holds(run_spillway(command + "--xla-flags=" + wrong).out, meant));
    CHECK(holds(run_spillway(command + "--xla-flags=" + wrong + " --json").out, meant));
    CHECK_FALSE(holds(run_spillway(command).out, meant));
  }
}

TEST_CASE("C25: flags may stand in a file, as for XLA") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("flags.txt", "--xla_gpu_autotune_level=high\n");
  const Run run = run_spillway("flags --check " + path);
  CHECK(run.exit_code == 1);
  CHECK(holds(run.out, "--xla_gpu_autotune_level: 'high' is no whole number."));
  testing::check_refused(
      "flags --check xla_dump_to=d", 2,
      "error: XLA would take 'xla_dump_to=d' for a file of flags, and there is none\n  flags begin "
      "with two dashes: --xla_dump_to=DIR\n");
}

}  // namespace
}  // namespace spillway
