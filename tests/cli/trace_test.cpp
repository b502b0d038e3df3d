// `simulate --trace` and `--explain` from the command line.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "model/base/read_file.h"
#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_refused;
using testing::read_text;
using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

constexpr const char* kSimulate = "simulate examples/jax/dumps/offload_qkv --hw gb200 ";

TEST_CASE("a trace is written beside the answer, which stays as it is") {
  const TemporaryFolder folder;
  const Run plain = run_spillway(kSimulate);
  std::string packed, text;
  for (const char* name : {"step.json.gz", "step.json", "step"}) {
    CAPTURE(name);
    const std::string path = folder.path(name);
    const Run run = run_spillway(kSimulate + ("--trace " + path));
    CHECK(run.exit_code == 0);
    CHECK(run.out == plain.out);
    CHECK(run.err.starts_with(path + ": a trace of 8,383 slices and 96 flows, "));
    CHECK(run.err.ends_with("; open it in ui.perfetto.dev\n"));
    const std::string content = read_text(path);
    const bool is_text = std::string_view(name) == "step.json";
    CHECK(content.starts_with(is_text ? "{\"displayTimeUnit\"" : "\x1f\x8b"));
    (is_text ? text : packed) = content;
  }
  const auto unpacked = read_file(folder.path("step"));
  REQUIRE(unpacked.ok());
  CHECK(**unpacked == text);
  CHECK(packed.size() < text.size() / 8);
  // The same step, the same bytes.
  run_spillway(kSimulate + ("--trace " + folder.path("again")));
  CHECK(read_text(folder.path("again")) == packed);
}

TEST_CASE("names of the sidecar are in the trace") {
  const TemporaryFolder folder;
  const std::string path = folder.path("step.json");
  run_spillway(kSimulate + ("--trace " + path));
  CHECK(read_text(path).find("\"residual\":\"query_proj\"") == std::string::npos);
  run_spillway(kSimulate + ("--names examples/jax/dumps/offload_qkv/names.json --trace " + path));
  CHECK(read_text(path).find("\"residual\":\"query_proj\"") != std::string::npos);
}

TEST_CASE("a trace that cannot be written is an error, and there is no answer") {
  const Run run = run_spillway(kSimulate + std::string("--trace nowhere/step.json"));
  CHECK(run.exit_code == 74);
  CHECK(run.out == "");
  CHECK(run.err == "nowhere/step.json: error: cannot be written: No such file or directory\n");
}

TEST_CASE("a trace is not written over what is read, by whatever name") {
  const TemporaryFolder folder;
  const std::string dump = testing::source_path("examples/jax/dumps/offload_qkv/");
  const auto text = read_file(dump + "jit_train_step.sm_10.0a_gpu_after_optimizations.txt.gz");
  REQUIRE(text.ok());
  const std::string program = folder.write("step.txt", **text);
  const std::string names = folder.write("names.json", read_text(dump + "names.json"));
  std::filesystem::create_symlink(program, folder.path("link"));
  std::filesystem::create_hard_link(program, folder.path("hard"));
  for (const char* name : {"step.txt", "link", "hard"}) {
    CAPTURE(name);
    const std::string trace = folder.path(name);
    check_refused("simulate " + program + " --hw gb200 --trace " + trace, 2,
                  "error: --trace '" + trace + "' is the file that is read as '" + program +
                      "', and would be overwritten\n  give it another name\n");
    CHECK(read_text(program) == **text);
  }
  CHECK(std::filesystem::is_symlink(folder.path("link")));
  check_refused("simulate " + program + " --hw gb200 --names " + names + " --trace " + names, 2,
                "error: --trace '" + names + "' is the file that is read as '" + names +
                    "', and would be overwritten\n  give it another name\n");
}

TEST_CASE("a path with an end of line stays on one") {
  const TemporaryFolder folder;
  const Run run =
      run_spillway(kSimulate + ("--trace \"$(printf '" + folder.path("two\\nlines") + "')\""));
  CHECK(run.exit_code == 0);
  CHECK(run.err.starts_with(folder.path("two?lines") + ": a trace of "));
  const Run nowhere =
      run_spillway(kSimulate + std::string("--trace \"$(printf 'no\\nfolder/x')\""));
  CHECK(nowhere.err == "no?folder/x: error: cannot be written: No such file or directory\n");
}

TEST_CASE("an explanation stands in the JSON, beside everything else") {
  const auto json = nlohmann::json::parse(
      run_spillway(kSimulate + std::string("--explain all-gather-start.2 --json")).out);
  CHECK(json["explain"]["asked"] == "all-gather-start.2");
  CHECK(json["explain"]["copies"].size() == 1);
  CHECK(json["step_seconds"] > 0);
  const auto plain = nlohmann::json::parse(run_spillway(kSimulate + std::string("--json")).out);
  CHECK_FALSE(plain.contains("explain"));
}

TEST_CASE("what cannot be explained is refused") {
  check_refused(kSimulate + std::string("--explain all-gather-strat.2"), 2,
                "error: --explain: 'all-gather-strat.2' is no copy, collective or offloaded "
                "residual of the program\n  did you mean 'all-gather-start.2', "
                "'all-gather-start.1', 'all-gather-start.12', 'all-gather-start.3'?\n");
}

}  // namespace
}  // namespace spillway
