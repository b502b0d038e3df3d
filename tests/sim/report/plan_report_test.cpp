#include "sim/report/plan_report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "model/base/format.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/planner/example.h"
#include "tests/sim/report/rendered.h"

namespace spillway {
namespace {

using testing::check_fields;
using testing::check_tables;
using testing::check_text;
using testing::Example;
using testing::Is;
using testing::Json;
using testing::line_with;
using testing::read_example;
using testing::toy_example;

PlanReport plan(const Example& e, const BudgetWishes& wishes = {}) {
  return testing::value_or_fail(make_plan_report(e.program, e.schedule, e.profile, e.topology,
                                                 e.names, e.budget(wishes), {}));
}

BudgetWishes hbm_limit(Bytes limit) {
  return {.hbm_limit = limit, .fraction = {}, .host_limit = {}};
}

const std::vector<std::string> kHeads = {"Why",     "XLA flags", "Environment",
                                         "MaxText", "JAX",       "Exposed"};

void check_case(const Json& json, std::size_t names) {
  check_fields(json, {{"policy", Is::kObject},
                      {"batch", Is::kNull},
                      {"seq", Is::kNull},
                      {"flags", Is::kObject},
                      {"step_seconds", Is::kNumber},
                      {"peak_device_bytes", Is::kInteger},
                      {"host_bytes", Is::kInteger},
                      {"fits", Is::kFlag},
                      {"smallest_fraction", Is::kNumber},
                      {"dot_flops_per_step", Is::kNumber},
                      {"d2h_bytes_per_step", Is::kInteger},
                      {"h2d_bytes_per_step", Is::kInteger},
                      {"exposed_copy_seconds", Is::kNumber}});
  CHECK(json["policy"].size() == names);
  const std::set<std::string> choices = {"keep", "offload", "recompute"};
  for (const Json& choice : json["policy"]) CHECK(choices.contains(choice.get<std::string>()));
  CHECK(json["exposed_copy_seconds"] <= json["step_seconds"]);
}

TEST_CASE("the JSON of plan keeps its contract") {
  struct Row {
    const char* name;
    const char* dump;
    const char* machine;
    BudgetWishes wishes;
    bool fits;
    std::size_t names;  ///< and the two classes of state
  };
  const Row rows[] = {
      {"JAX's pool", "keep", "gb200", {}, true, 8},
      {"most of the HBM",
       "offload_qkv",
       "gb200",
       {.hbm_limit = {}, .fraction = 0.95, .host_limit = {}},
       true,
       6},
      {"another machine", "offload_all", "h100", {}, true, 8},
      {"nothing fits", "keep", "gb200", hbm_limit(Bytes(1)), false, 8},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Example example = read_example(row.dump, row.machine);
    const PlanReport report = plan(example, row.wishes);
    const Json json = Json::parse(render_json(report));
    testing::check_units(json);
    CHECK(json["schema"] == "spillway.plan/1");
    check_fields(json, {{"best", Is::kObject},
                        {"fits", Is::kFlag},
                        {"lower_bound_seconds", Is::kNumber},
                        {"gap", Is::kNumber},
                        {"alternatives", Is::kList},
                        {"flags", Is::kObject},
                        {"jaxlib", Is::kText},
                        {"flag_effects", Is::kList},
                        {"no_flags_because", Is::kText},
                        {"user_flags", Is::kNull},
                        {"environment", Is::kObject},
                        {"maxtext", Is::kObject},
                        {"reasons", Is::kList}});
    CHECK(json["fits"] == row.fits);
    CHECK(json["best"]["fits"] == row.fits);
    CHECK(json["gap"] < 1);
    CHECK(json["lower_bound_seconds"] <= json["best"]["step_seconds"]);
    check_case(json["best"], row.names);
    for (const char* list : {"alternatives", "baselines", "pareto"}) {
      CHECK_FALSE(json[list].empty());
      for (const Json& c : json[list]) check_case(c, row.names);
    }
    for (const char* settings : {"flags", "environment", "maxtext"})
      for (const Json& value : json[settings]) CHECK(value.is_string());
    // remat_policy, all names of the sidecar, and where state goes
    std::size_t state_keys = 0;
    for (std::size_t k = 0; k < report.plan.handles.size(); ++k)
      state_keys +=
          report.plan.handles[k].state && report.plan.best.policy[k] == Choice::kOffload ? 1 : 0;
    CHECK(json["maxtext"].size() == 1 + example.names.names.size() + state_keys);
    REQUIRE(json["reasons"].size() == row.names);
    for (const Json& reason : json["reasons"]) {
      check_fields(reason, {{"name", Is::kText}, {"choice", Is::kText}, {"text", Is::kText}});
      CHECK(reason["choice"] == json["best"]["policy"][reason["name"].get<std::string>()]);
    }
    CHECK(json["objections"].empty());

    const std::string text = render_text(report);
    check_text(text);
    check_tables(text, kHeads);
    const std::string best = line_with(text, row.fits ? "best " : "closest ");
    CHECK(best.find(format_seconds(Seconds(json["best"]["step_seconds"].get<double>()))) !=
          std::string::npos);
    CHECK((text.find("NOTHING FITS") == std::string::npos) == row.fits);
    // Settings are for plans that can be carried out.
    CHECK((text.find("remat_policy: ") != std::string::npos) == row.fits);
    for (const Reason& reason : report.plan.reasons)
      for (const std::string& line : reason.lines) CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("every name explains itself, by any of its names") {
  const Example example = read_example("keep");
  PlanReport report = plan(example);
  for (std::size_t k = 0; k < report.plan.handles.size(); ++k) {
    const Handle& handle = report.plan.handles[k];
    CAPTURE(handle.name);
    const std::string text = render_text(testing::value_or_fail(explain(report, handle.name)));
    check_text(text);
    const auto lines = testing::lines_of(text);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == handle.name + ": " + std::string(name_of(report.plan.best.policy[k])) + ", " +
                          format_bytes(handle.bytes) + " on one device" +
                          (handle.state ? "" : ", 1 residual(s)"));
    CHECK(lines[1] == "  " + report.plan.reasons[k].text());
  }
  const auto text_of = [&](const std::string& name) {
    return render_text(testing::value_or_fail(explain(report, name)));
  };
  const std::string by_name = text_of("query_proj");
  report.plan.handles[1].aliases = {"q"};
  CHECK(text_of("q") == "q" + by_name.substr(std::string("query_proj").size()));
  report.unmatched = {"dropped"};
  CHECK(text_of("dropped") ==
        "dropped: no residual of this program carries that name: it is recomputed, or backward "
        "does not need it\n");
}

TEST_CASE("a name that nobody knows is the user's mistake") {
  PlanReport report = plan(read_example("keep"));
  report.unmatched = {"dropped"};
  struct Row {
    const char* name;
    const char* nearest;
  };
  for (const Row& row : {Row{"query_prj", "did you mean 'query_proj'? "},
                         Row{"droped", "did you mean 'dropped'? "}, Row{"nothing_like_it", ""}}) {
    CAPTURE(row.name);
    const Result<Explanation> explanation = explain(report, row.name);
    REQUIRE_FALSE(explanation.ok());
    CHECK(explanation.error().kind == ErrorKind::kUsage);
    CHECK(to_text(explanation.error()) ==
          "error: --explain knows no name '" + std::string(row.name) + "'\n  " + row.nearest +
              "known are decoder_layer_input, query_proj, key_proj, value_proj, mlpwi_0, mlpwi_1, "
              "optimizer, params, dropped");
  }
}

TEST_CASE("an explanation is JSON too") {
  PlanReport report = plan(read_example("keep"));
  const Json json =
      Json::parse(render_json(report, testing::value_or_fail(explain(report, "query_proj"))));
  testing::check_units(json);
  CHECK(json["schema"] == "spillway.plan/1");
  CHECK(json["fits"] == true);
  check_fields(json["explain"], {{"name", Is::kText},
                                 {"choice", Is::kText},
                                 {"bytes", Is::kInteger},
                                 {"residuals", Is::kInteger},
                                 {"text", Is::kText}});
  CHECK(json["explain"]["choice"] == name_of(report.plan.reasons[1].choice));
  CHECK(json["explain"]["text"] == report.plan.reasons[1].text());
  report.unmatched = {"dropped"};
  CHECK(Json::parse(render_json(report, testing::value_or_fail(explain(
                                            report, "dropped"))))["explain"]["choice"] == nullptr);
}

TEST_CASE("a custom call of unknown cost is named, with and without handles") {
  const std::string call = "%odd = f32[8]{0} custom-call(%p), custom_call_target=\"mystery\"\n";
  std::string scan = testing::ToyScan{}.text();
  const std::string end = "ROOT %end";
  scan.insert(scan.find(end),
              "%odd = f32[1,64]{1,0} custom-call(%start), "
              "custom_call_target=\"mystery\"\n  ");
  const std::string one = "ENTRY %main {\n  %p = f32[8]{0} parameter(0)\n  ROOT " + call + "}\n";
  for (const std::string& program : {one, scan}) {
    CAPTURE(program);
    const PlanReport report = plan(toy_example(program));
    const std::string text = render_text(report);
    check_text(text);
    CHECK(line_with(text, "Unknown cost") == "Unknown cost, a lower bound was taken: mystery");
    CHECK(Json::parse(render_json(report))["unknown"] == Json({"mystery"}));
  }
}

Bytes least_hbm(const PlanResult& plan) {
  return std::ranges::min_element(plan.pareto, {}, &PolicyCase::peak_device)->peak_device;
}

TEST_CASE("when nothing fits, what is shown is the closest, and called so") {
  // With 1 B on the host, the policy that misses least in all is not the one that needs least HBM.
  const Example example = read_example("keep");
  const BudgetWishes wishes = {
      .hbm_limit = Bytes(std::int64_t{20} << 30), .fraction = {}, .host_limit = Bytes(1)};
  struct Row {
    std::size_t most_simulated;
    const char* head;
    const char* line;
  };
  const Row rows[] = {
      {4096, "NOTHING FITS. The closest:", "fits, "},
      {1, "NOTHING FITS. The closest found:", "was found to fit, "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.head);
    const PlanReport report = testing::value_or_fail(make_plan_report(
        example.program, example.schedule, example.profile, example.topology, example.names,
        example.budget(wishes), {.threads = 2, .most_simulated = row.most_simulated}));
    const PolicyCase& best = report.plan.best;
    const std::string text = render_text(report);
    check_text(text);
    CHECK(line_with(text, "NOTHING").starts_with(row.head));
    CHECK(line_with(text, "None of") ==
          fmt::format("None of {:.0f} policies {}{} simulated. {} misses {} in all: it needs {} of "
                      "HBM (a fraction of {:.2f}) and {} of the host. The least HBM that any "
                      "simulated needs is {}.",
                      report.plan.policies, row.line, report.plan.simulated,
                      report.plan.proven ? "The closest" : "The closest found",
                      format_bytes(best.fit.over_hbm + best.fit.over_host),
                      format_bytes(best.peak_device), best.fit.smallest_fraction,
                      format_bytes(best.host), format_bytes(least_hbm(report.plan))));
    CHECK(best.peak_device > least_hbm(report.plan));
  }
}

TEST_CASE("a second name is set like the first") {
  PlanReport report = plan(read_example("keep"));
  report.plan.handles[1].aliases = {"q"};
  const Json best = Json::parse(render_json(report))["best"]["policy"];
  CHECK(best.size() == 9);  // six names, one of them twice, and two classes of state
  CHECK(best["q"] == best["query_proj"]);
}

TEST_CASE("a program that leaves nothing to decide is told whether it fits") {
  const Example example = toy_example("ENTRY %main {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n");
  struct Row {
    const char* name;
    std::int64_t limit;
    bool fits;
    const char* line;
  };
  const Row rows[] = {
      {"just", 32, true, "As compiled: 0 s a step, 32 B of HBM, 0 B on the host: fits"},
      {"not quite", 31, false,
       "As compiled: 0 s a step, 32 B of HBM, 0 B on the host: misses HBM by 1 B"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const PlanReport report = plan(example, hbm_limit(Bytes(row.limit)));
    const std::string text = render_text(report);
    check_text(text);
    CHECK(line_with(text, "Nothing to decide") != "");
    CHECK(line_with(text, "As compiled") == row.line);
    const Json json = Json::parse(render_json(report));
    testing::check_units(json);
    CHECK(json["fits"] == row.fits);
    CHECK(json["gap"] == 0);
    check_case(json["best"], 0);
  }
}

TEST_CASE("names that match nothing leave nothing to decide, and the residuals are listed") {
  Example example = toy_example(testing::ToyScan{}.text());
  CheckpointName other;
  other.name = "query";
  other.shape = {7};
  other.type = ElementType::kF32;
  example.names.names = {other};
  const PlanReport report = plan(example);
  const std::string text = render_text(report);
  check_text(text);
  CHECK(line_with(text, "Nothing to decide") != "");
  CHECK(line_with(text, "Fixed, since it has no name: r0") ==
        "Fixed, since it has no name: r0 (f32[1,64], 1.00 KiB)");
  CHECK(Json::parse(render_json(report))["fixed"].size() == 2);
}

TEST_CASE("without names, residuals are planned under their ids and nothing is to be set in JAX") {
  const Example example = toy_example(testing::ToyScan{}.text());
  const PlanReport report = plan(example, hbm_limit(Bytes(1 << 20)));
  const std::string text = render_text(report);
  check_text(text);
  check_tables(text, kHeads);
  CHECK(text.find("MaxText") == std::string::npos);
  CHECK(text.find("JAX") == std::string::npos);
  const Json json = Json::parse(render_json(report));
  testing::check_units(json);
  check_case(json["best"], 2);
  CHECK(json["best"]["policy"].contains("r0"));
  CHECK(json["maxtext"].empty());
  CHECK(json["jax_policy"] == "");
}

TEST_CASE(
    "flags are those of the version that was asked for, else of the sidecar, else the newest") {
  Example example = read_example("keep");
  const auto report_of = [&example](const FlagRequest& flags) {
    return make_plan_report(example.program, example.schedule, example.profile, example.topology,
                            example.names, example.budget(), {}, flags);
  };
  const auto text_of = [&](const FlagRequest& flags) {
    return render_text(testing::value_or_fail(report_of(flags)));
  };
  const auto holds = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const auto version = [](const char* text) { return parse_jaxlib_version(text); };
  example.names.jaxlib = {};
  CHECK(holds(text_of({}), "Assumed: jaxlib 0.12.0.1, for want of --jaxlib\n"));
  example.names.jaxlib = version("0.7.0");
  const std::string older = text_of({});
  CHECK(holds(older, "XLA flags for jaxlib 0.7.0\n"));
  CHECK_FALSE(holds(older, "for want of --jaxlib"));
  CHECK(holds(text_of({.jaxlib = version("0.8.3"), .flags = {}}), "XLA flags for jaxlib 0.8.3\n"));
  // Of a version that nobody asked, flags are neither recommended nor judged.
  example.names.jaxlib = version("0.99.0");
  const std::string unknown = text_of({});
  check_text(unknown);
  CHECK(holds(unknown, "  none: jaxlib 0.99.0 is not known here"));
  CHECK_FALSE(holds(unknown, "--xla_"));
  CHECK_FALSE(report_of({.jaxlib = {}, .flags = FlagText{}}).ok());
  CHECK_FALSE(report_of({.jaxlib = version("0.99.0"), .flags = {}}).ok());
}

TEST_CASE("the user's flags are judged, and not recommended once more") {
  const Example example = read_example("keep");
  const auto report = testing::value_or_fail(make_plan_report(
      example.program, example.schedule, example.profile, example.topology, example.names,
      example.budget(), {},
      {.jaxlib = {},
       .flags = read_flags("--xla_disable_hlo_passes=algsimp,rematerialization --xla_nope")}));
  const Json json = Json::parse(render_json(report));
  testing::check_units(json);
  CHECK(json["flags"].size() == 1);
  CHECK(json["flags"]["xla_disable_automatic_host_compute_offload"] == "true");
  REQUIRE(json["user_flags"].size() == 1);
  CHECK(json["user_flags"][0]["code"] == "unknown-flag");
  CHECK(json["user_flags"][0]["severity"] == "error");
  const std::string text = render_text(report);
  check_text(text);
  check_tables(text, {"Your XLA flags", "XLA flags"});
}

TEST_CASE("what does not fit says by how much, in HBM and on the host") {
  const Example example = read_example("keep");
  struct Row {
    const char* name;
    BudgetWishes wishes;
    const char* says;
  };
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  const Row rows[] = {
      {"HBM", hbm_limit(Bytes(10 * kGibibyte)), " misses HBM by 17.35 GiB "},
      {"both",
       {.hbm_limit = Bytes(10 * kGibibyte), .fraction = {}, .host_limit = Bytes(kGibibyte)},
       " misses HBM by 17.35 GiB, host by 151.00 GiB "},
      {"the host",
       {.hbm_limit = Bytes(30 * kGibibyte), .fraction = {}, .host_limit = Bytes(kGibibyte)},
       " misses host by 151.00 GiB "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string text = render_text(plan(example, row.wishes));
    check_text(text);
    CHECK(line_with(text, "offload all ").find(row.says) != std::string::npos);
  }
}

TEST_CASE("a pool that leaves too little beside it is warned of") {
  const Example example = read_example("keep");
  const BudgetWishes all = {.hbm_limit = {}, .fraction = 1.0, .host_limit = Bytes(1)};
  const std::string text = render_text(plan(example, all));  // nothing can go to the host
  CHECK(line_with(text, "Warning: a pool of 0.95 leaves less than the ") != "");
  CHECK(render_text(plan(example)).find("Warning") == std::string::npos);
}

}  // namespace
}  // namespace spillway
