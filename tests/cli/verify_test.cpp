// plan --out, whatif --out and verify: what is written, and what is said of it once it is compiled.
#include <doctest/doctest.h>

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
using testing::source_path;
using testing::TemporaryFolder;

constexpr const char* kKeep =
    "examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 ";
/// The policy that examples/jax/dumps/offload_qkv was compiled with.
constexpr const char* kPolicy =
    "--set query_proj=offload --set key_proj=offload --set value_proj=offload --set "
    "mlpwi_0=recompute --set mlpwi_1=recompute ";
/// Written by the first test; a plan that is read where it is committed has the same path for all.
constexpr const char* kPlan = "examples/jax/plans/offload_qkv.yaml ";

constexpr const char* kLenient = " --allow-device 2% --allow-flops 2%";

std::string whatif(const std::string& out) {
  return std::string("whatif ") + kKeep + kPolicy + "--out " + out;
}

std::string dump_with_names(const std::string& dump) {
  const std::string folder = "examples/jax/dumps/" + dump;
  return folder + " --names " + folder + "/names.json";
}

TEST_CASE("a plan is written beside the answer, the same bytes each time") {
  const TemporaryFolder folder;
  const std::string path = folder.write("plan.yaml", "what was there before");
  const Run run = run_spillway(whatif(path));
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  const std::string text = read_text(path);
  check_golden("../../examples/jax/plans/offload_qkv.yaml", text);
  CHECK(run_spillway(whatif(folder.path("again.yaml"))).out == run.out);
  CHECK(read_text(folder.path("again.yaml")) == text);
}

TEST_CASE("the answer of plan and its file say the same") {
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  const Run run = run_spillway(std::string("plan ") + kKeep + "--json --out " + path);
  CHECK(run.exit_code == 0);
  const auto best = nlohmann::json::parse(run.out)["best"];
  const std::string text = read_text(path);
  for (const auto& [name, choice] : best["policy"].items()) {
    CAPTURE(name);
    CHECK(text.find("\n  " + name + ": " + choice.get<std::string>() + "\n") != std::string::npos);
  }
  for (const auto& [figure, key] : {std::pair{"peak_device_bytes", "total_device_bytes"},
                                    std::pair{"d2h_bytes_per_step", "d2h_bytes_per_step"},
                                    std::pair{"h2d_bytes_per_step", "h2d_bytes_per_step"}}) {
    CAPTURE(figure);
    CHECK(text.find(std::string("\n  ") + key + ": " + best[figure].dump() + "\n") !=
          std::string::npos);
  }
}

TEST_CASE("what was compiled as planned agrees, and what was not differs by names") {
  struct Row {
    const char* golden;
    std::string arguments;
    int exit_code;
  };
  const Row rows[] = {
      // The rewrite computes one product a layer more than XLA does here.
      {"verify/same_policy.txt", dump_with_names("offload_qkv") + kLenient, 0},
      {"verify/same_policy.json", dump_with_names("offload_qkv") + kLenient + " --json", 0},
      {"verify/other_policy.txt", dump_with_names("offload_all"), 1},
      {"verify/other_policy.json", dump_with_names("offload_all") + " --json", 1},
      {"verify/not_recompiled.txt", dump_with_names("keep"), 1},
      {"verify/without_names.txt", "examples/jax/dumps/offload_all", 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.golden);
    const Run run = run_spillway(std::string("verify ") + kPlan + row.arguments);
    CHECK(run.exit_code == row.exit_code);
    CHECK(run.err == "");
    check_golden(row.golden, run.out);
  }
}

TEST_CASE("what is allowed decides the exit code") {
  const std::string verify = std::string("verify ") + kPlan + dump_with_names("offload_all");
  CHECK(run_spillway(verify + " --allow-device 1000% --allow-host 1000% --allow-moved 1000% "
                              "--allow-flops 1000% --allow-step 1000%")
            .exit_code == 0);
  CHECK(run_spillway(verify + " --allow-device 1000% --allow-host 1000% --allow-moved 1000% "
                              "--allow-flops 1000% --allow-step 0")
            .exit_code == 1);
  check_refused(verify + " --allow-step much", 2,
                "error: --allow-step: 'much' is no percentage\n  for example 1%\n");
}

TEST_CASE("files that are no plan, and programs that are not the plan's") {
  const TemporaryFolder folder;
  check_refused(
      "verify " + folder.path("nowhere.yaml") + " examples/jax/dumps/keep", 3,
      folder.path("nowhere.yaml") + ": error: cannot be opened: No such file or directory\n");
  const Run other =
      run_spillway(std::string("verify ") + kPlan + "examples/jax/dumps/keep_batch_32");
  CHECK(other.exit_code == 3);
  CHECK(other.out == "");
  CHECK(other.err.find("another shape") != std::string::npos);
  check_refused(
      "verify examples/jax/dumps/keep/names.json examples/jax/dumps/keep", 3,
      "examples/jax/dumps/keep/names.json:2:12: error: the schema 'spillway.names/1' is not "
      "known\n   2 |  \"schema\": \"spillway.names/1\",\n     |            ^ this version "
      "reads spillway.plan_file/1\n");
}

TEST_CASE("one plan a file, and over nothing that was read") {
  const TemporaryFolder folder;
  const std::string out = " --out " + folder.path("plan.yaml");
  check_refused(std::string("whatif ") + kKeep + "--set query_proj=keep,offload" + out, 2,
                "error: --out is for one case, and these are 2\n  give one choice for each name, "
                "and one value for each flag\n");
  check_refused(std::string("whatif ") + kKeep +
                    "--second examples/jax/dumps/keep_batch_32 --batch-of-dumps 64,32 --batch 16" +
                    out,
                2,
                "error: --out is for a policy of the program's own size, and not in parts\n  leave "
                "--second, --accumulation and --shard out\n");
  const std::string names =
      folder.write("names.json", read_text("examples/jax/dumps/keep/names.json"));
  const Run over =
      run_spillway("plan examples/jax/dumps/keep --hw gb200 --names " + names + " --out " + names);
  CHECK(over.exit_code == 2);
  CHECK(over.err.find("would be overwritten") != std::string::npos);
  check_refused(
      std::string("plan ") + kKeep + "--out " + folder.path("nowhere/plan.yaml"), 74,
      folder.path("nowhere/plan.yaml") + ": error: cannot be written: No such file or directory\n");
}

TEST_CASE("a plan is written through a link, which stays one") {
  const TemporaryFolder folder;
  const std::string target = folder.write("target.yaml", "old");
  std::filesystem::create_symlink(target, folder.path("link.yaml"));
  CHECK(run_spillway(whatif(folder.path("link.yaml"))).exit_code == 0);
  CHECK(std::filesystem::is_symlink(folder.path("link.yaml")));
  CHECK(read_text(target).starts_with("# "));
}

TEST_CASE("a plan for no device, and times on another machine") {
  const TemporaryFolder folder;
  std::string text = read_text(source_path("examples/jax/plans/offload_qkv.yaml"));
  const std::string devices = "devices: 8";
  text.replace(text.find(devices), devices.size(), "devices: 0");
  const Run none =
      run_spillway("verify " + folder.write("none.yaml", text) + " " + dump_with_names("keep"));
  CHECK(none.exit_code == 3);
  CHECK(none.out == "");
  // What h100 takes says nothing about a plan for gb200.
  const Run other = run_spillway(std::string("verify ") + kPlan + dump_with_names("offload_qkv") +
                                 kLenient + " --hw h100");
  CHECK(other.exit_code == 0);
  CHECK(other.out.find("simulated on another machine") != std::string::npos);
}

TEST_CASE("a sidecar of another program is said to be that, before anything else") {
  const TemporaryFolder folder;
  std::string names = read_text(source_path("examples/jax/dumps/keep/names.json"));
  // All its arrays are of another type.
  for (std::size_t at; (at = names.find("bfloat16")) != std::string::npos;)
    names.replace(at, 8, "float64");
  const Run run = run_spillway("plan examples/jax/dumps/keep --hw gb200 --names " +
                               folder.write("names.json", names));
  CHECK(run.out.find("No name of the sidecar fits a residual of this program") <
        run.out.find("Does not fit as compiled"));
}

}  // namespace
}  // namespace spillway
