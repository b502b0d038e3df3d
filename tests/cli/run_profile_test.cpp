// plan and whatif with --profile: the residual first, and no ranking where it is too large.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/run/write_pgle.h"
#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/sim/planner/example.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_refused;
using testing::Example;
using testing::read_example;
using testing::read_text;
using testing::Run;
using testing::run_spillway;
using testing::source_path;
using testing::TemporaryFolder;

/// Two of the names: few policies, soon gone through.
std::string few_names(const TemporaryFolder& folder) {
  auto sidecar =
      nlohmann::json::parse(read_text(source_path("examples/jax/dumps/keep/names.json")));
  auto few = nlohmann::json::array();
  for (const auto& name : sidecar["names"])
    if (name["name"] == "query_proj" || name["name"] == "mlpwi_0") few.push_back(name);
  sidecar["names"] = few;
  return folder.write("names.json", sidecar.dump());
}

std::string step(const TemporaryFolder& folder) {
  return "examples/jax/dumps/keep --hw gb200 --names " + few_names(folder) + " ";
}

/// As if a run had taken what the model says: its profile without the comments.
std::string write_run(const TemporaryFolder& folder) {
  const Example example = read_example("keep");
  const std::string modelled = to_pbtxt(
      make_pgle_profile(example.program, costs(example.program, example.profile, example.topology),
                        example.profile, example.topology));
  std::istringstream lines(modelled);
  std::string run;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) run += line + "\n";
  const std::string with_comments = folder.write("modelled.pbtxt", modelled);
  check_refused("whatif " + step(folder) + "--set query_proj=offload --profile " + with_comments, 3,
                with_comments +
                    ": error: holds what the cost model says, and in units of XLA's: nobody "
                    "measured it\n  a profile of a run is what jax_enable_pgle or a profiler's "
                    "trace gives\n");
  return folder.write("run.pbtxt", run);
}

std::size_t place(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  CAPTURE(what);
  CHECK(at != std::string::npos);
  return at;
}

TEST_CASE("a plan anchored on a run") {
  const TemporaryFolder folder;
  const std::string run = write_run(folder);
  const std::string plan = "plan " + step(folder) + "--profile " + run;
  SUBCASE("near the measured step") {
    const std::string out = folder.path("plan.yaml");
    const Run text = run_spillway(plan + " --measured-step 3.1s --out " + out);
    CHECK(text.exit_code == 0);
    CHECK(place(text.out, "Residual against the measured step: +") < place(text.out, "Best: "));
    CHECK(text.out.find("NOT RANKED") == std::string::npos);
    CHECK(read_text(out).find("anchored_on: ") != std::string::npos);
    const Run verified = run_spillway("verify " + out +
                                      " examples/jax/dumps/keep --names "
                                      "examples/jax/dumps/keep/names.json");
    place(verified.out, "the predicted step rests on what was measured");
  }
  SUBCASE("far from it") {
    const std::string out = folder.path("plan.yaml");
    const Run text = run_spillway(plan + " --measured-step 4s --out " + out);
    CHECK(text.exit_code == 1);
    CHECK(text.err == "nothing is written, since policies are not ranked\n");
    CHECK_FALSE(std::filesystem::exists(out));
    CHECK(place(text.out, "NOT RANKED: ") < place(text.out, "as compiled"));
    CHECK(text.out.find("Best") == std::string::npos);
    const Run answer = run_spillway(plan + " --measured-step 4s --json");
    CHECK(answer.exit_code == 1);
    const auto json = nlohmann::json::parse(answer.out);
    CHECK(json["anchor"]["ranked"] == false);
    CHECK(json["anchor"]["residual"].get<double>() < -0.1);
    CHECK(json["best"].is_null());
    CHECK(json["baselines"].size() > 3);
    CHECK(json["baselines"][0]["name"] == "as compiled");
  }
}

TEST_CASE("cases anchored on a run") {
  const TemporaryFolder folder;
  const std::string whatif = "whatif " + step(folder) +
                             "--set query_proj=offload,recompute "
                             "--profile " +
                             write_run(folder);
  const Run ranked = run_spillway(whatif + " --measured-step 3.1s");
  CHECK(ranked.exit_code == 0);
  place(ranked.out, "Residual against the measured step: +0.");
  place(ranked.out, "instructions that run something, 100.0 % of their time");
  const Run unknown = run_spillway(whatif);
  CHECK(unknown.exit_code == 1);
  place(unknown.out, "Residual against the measured step: not known");
  place(unknown.out, "say it with --measured-step");
  const auto json = nlohmann::json::parse(run_spillway(whatif + " --json").out);
  CHECK(json["anchor"]["residual"].is_null());
  CHECK(json["anchor"]["ranked"] == false);
  CHECK(json["cases"].size() == 2);
}

TEST_CASE("profiles of nothing, and options that do not go together") {
  const TemporaryFolder folder;
  const std::string whatif = "whatif " + step(folder) + "--set query_proj=offload ";
  const std::string other = folder.write("other.pbtxt", "costs { name: \"nobody\" cost_us: 12 }\n");
  check_refused(whatif + "--profile " + other, 3,
                other +
                    ": error: names nothing that 'jit_train_step' runs\n  its names are another "
                    "program's, or the program was compiled again since\n");
  check_refused(whatif + "--profile " + other + " --measured-step 5", 2,
                "error: --measured-step '5' needs a unit\n  for example --measured-step 5.32s\n");
  check_refused(whatif + "--profile " + other + " --measured-step 0s", 2,
                "error: --measured-step must be more than nothing\n  for example --measured-step "
                "5.32s\n");
  const std::string own = folder.path("own.pbtxt");
  REQUIRE(run_spillway("plan examples/jax/dumps/offload_qkv --hw gb200 --pgle " + own).exit_code ==
          0);
  for (const std::string& command : {whatif, std::string("simulate " + step(folder))})
    check_refused(command + "--profile " + own, 3,
                  own +
                      ": error: holds what the cost model says, and in units of XLA's: nobody "
                      "measured it\n  a profile of a run is what jax_enable_pgle or a profiler's "
                      "trace gives\n");
  CHECK(run_spillway(whatif + "--measured-step 5s").exit_code == 2);
  CHECK(run_spillway(whatif + "--profile " + other + " --pageable-copies 1.4GB/s").exit_code == 2);
  const Run over = run_spillway(whatif + "--profile " + other + " --out " + other);
  CHECK(over.exit_code == 2);
  place(over.err, "would be overwritten");
}

}  // namespace
}  // namespace spillway
