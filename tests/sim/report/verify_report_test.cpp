// A plan beside what was compiled for it: toys whose answers fit in the head, and the corpus.
#include "sim/report/verify_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/flags/known_flags.h"
#include "model/plan/read_plan_file.h"
#include "model/plan/write_plan_file.h"
#include "sim/planner/policy_choices.h"
#include "tests/sim/planner/example.h"
#include "tests/sim/planner/toy_copy.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::Example;
using testing::value_or_fail;

/// A policy of an example, every name that is not said recomputed, as a file that was read back.
PlanFile plan_of(const Example& example, const std::vector<std::string>& choices) {
  const Budget budget = example.budget();
  const Evaluator evaluator = example.evaluator();
  std::vector<NameChoice> wishes;
  for (const std::string& text : choices) wishes.push_back(value_or_fail(parse_name_choice(text)));
  for (const CheckpointName& name : example.names.names)
    if (std::ranges::find(wishes, name.name, &NameChoice::name) == wishes.end())
      wishes.push_back({name.name, {Choice::kRecompute}});
  const Policy policy =
      value_or_fail(combine(wishes, evaluator.handles(), example.names, 1)).policies[0];
  const ScheduleSettings settings = *schedule_settings(
      {},
      {newest_probed(), gpu_model(example.profile.device), has_only_common_parts(example.program)});
  const Program step = value_or_fail(evaluator.rewrite(policy, settings));
  const SimResult run = value_or_fail(evaluator.simulate_program(step));
  const PlanFile plan =
      make_plan_file({example.program, example.schedule, example.names, example.profile.id,
                      std::nullopt, std::nullopt, budget},
                     evaluator.handles(), policy, {}, check_fit(run.memory, budget).fits,
                     {step, text_schedule(step).value(), run}, {});
  return value_or_fail(parse_plan_file(to_yaml(plan), "plan.yaml"));
}

VerifyReport verify(const PlanFile& plan, const Example& compiled) {
  return value_or_fail(make_verify_report(
      plan, "plan.yaml", compiled.program,
      {.names = compiled.names, .profile = compiled.profile, .topology = compiled.topology}));
}

const VerifiedFigure& figure(const VerifyReport& report, std::string_view json) {
  const auto found = std::ranges::find_if(
      report.figures, [json](const VerifiedFigure& f) { return f.json == json; });
  REQUIRE(found != report.figures.end());
  return *found;
}

/// "name-not-done", … in order, each once; where the step's time goes is of any difference.
std::vector<std::string> codes_of(const VerifyReport& report) {
  std::vector<std::string> codes;
  for (const Cause& cause : report.causes)
    if (cause.code != "step-parts" && std::ranges::find(codes, cause.code) == codes.end())
      codes.push_back(cause.code);
  return codes;
}

/// "q: offload -> keep".
std::vector<std::string> differences_of(const VerifyReport& report) {
  std::vector<std::string> lines;
  for (const NotDone& value : report.not_done)
    lines.push_back(value.label + ": " +
                    (value.planned ? std::string(name_of(*value.planned)) : std::string("?")) +
                    " -> " + std::string(name_of(value.found)));
  return lines;
}

TEST_CASE("a figure agrees up to its tolerance and not beyond") {
  struct Row {
    double predicted, compiled;
    std::optional<double> tolerance;
    bool agrees;
  };
  const Row rows[] = {
      {100, 101, 0.01, true}, {100, 102, 0.01, false}, {100, 98, 0.01, false}, {100, 100, 0, true},
      {100, 101, 0, false},   {0, 0, 0, true},         {0, 1, 0.5, false},     {100, 500, {}, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.predicted);
    CAPTURE(row.compiled);
    const VerifiedFigure figure{
        "", "", VerifiedFigure::Unit::kBytes, row.predicted, row.compiled, row.tolerance};
    CHECK(figure.agrees() == row.agrees);
  }
}

TEST_CASE("a plan that changes nothing agrees with the program it was made from") {
  const Example keep = testing::read_example("keep");
  const PlanFile plan =
      plan_of(keep, {"decoder_layer_input=keep", "query_proj=keep", "key_proj=keep",
                     "value_proj=keep", "mlpwi_0=keep", "mlpwi_1=keep"});
  const VerifyReport report = verify(plan, keep);
  CHECK(report.agrees());
  CHECK(report.not_done.empty());
  CHECK(codes_of(report).empty());
  // Ordered again, it is not XLA's order to the byte.
  CHECK(std::abs(figure(report, "total_device_bytes").relative_difference()) < 0.005);
  CHECK(figure(report, "argument_bytes").difference() == 0);
  CHECK(figure(report, "dot_flops_per_step").difference() == 0);
}

TEST_CASE("a program that was not recompiled is told so, and what it lacks") {
  const Example keep = testing::read_example("keep");
  const PlanFile plan =
      plan_of(keep, {"decoder_layer_input=keep", "query_proj=offload", "key_proj=keep",
                     "value_proj=keep", "mlpwi_0=keep", "mlpwi_1=keep"});
  const VerifyReport report = verify(plan, keep);
  CHECK_FALSE(report.agrees());
  CHECK(codes_of(report).front() == "not-recompiled");
  CHECK(differences_of(report) == std::vector<std::string>{"query_proj: offload -> keep"});
  CHECK_FALSE(figure(report, "host_bytes").agrees());
  CHECK(figure(report, "host_bytes").compiled == 0);
  CHECK_FALSE(figure(report, "d2h_bytes_per_step").agrees());
  // All of it is this name's: nothing else to explain.
  const auto codes = codes_of(report);
  CHECK(std::ranges::find(codes, "not-by-names") == codes.end());
}

TEST_CASE("state that was not moved accounts for its bytes on the host and over the link") {
  const Example keep = testing::read_example("keep");
  PlanFile plan = plan_of(keep, {"decoder_layer_input=keep", "query_proj=offload", "key_proj=keep",
                                 "value_proj=keep", "mlpwi_0=keep", "mlpwi_1=keep"});
  const auto optimizer = std::ranges::find(plan.state, StateClass::kOptimizer, &PlannedState::kind);
  REQUIRE(optimizer != plan.state.end());
  optimizer->on_host = optimizer->bytes;
  StepFigures& predicted = plan.predicted;
  for (Bytes* const figure :
       {&predicted.memory.host_argument, &predicted.offloaded, &predicted.reloaded})
    *figure += optimizer->bytes;
  auto codes = codes_of(verify(plan, keep));
  CHECK(std::ranges::find(codes, "state-not-moved") != codes.end());
  CHECK(std::ranges::find(codes, "not-by-names") == codes.end());
  predicted.reloaded += Bytes(1024);
  const VerifyReport report = verify(plan, keep);
  const auto rest = std::ranges::find(report.causes, "not-by-names", &Cause::code);
  REQUIRE(rest != report.causes.end());
  CHECK(rest->what.starts_with("reloaded in a step: of "));
  CHECK(rest->what.find(" the names and the state above account for ") != std::string::npos);
}

TEST_CASE("a program that cannot be the plan's is refused") {
  const Example keep = testing::read_example("keep");
  const PlanFile plan = plan_of(keep, {"query_proj=keep"});
  struct Row {
    const char* name;
    void (*change)(PlanFile&);
    const char* message;
  };
  const Row rows[] = {
      {"another module", [](PlanFile& p) { p.program.name = "jit_eval"; },
       "is the module 'jit_train_step', and the plan is for 'jit_eval'"},
      {"other devices", [](PlanFile& p) { p.program.devices = 16; },
       "runs on 8 devices, and the plan is for 16"},
      {"another shape", [](PlanFile& p) { p.program.arguments = Bytes(1024); },
       "bytes of arguments a device, and the plan is for a step with 1,024: another shape"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    PlanFile other = plan;
    row.change(other);
    const auto report = make_verify_report(
        other, "plan.yaml", keep.program,
        {.names = keep.names, .profile = keep.profile, .topology = keep.topology});
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().kind == ErrorKind::kInput);
    CHECK(to_text(report.error()).find(row.message) != std::string::npos);
  }
}

TEST_CASE("JSON has what the text has") {
  const Example keep = testing::read_example("keep");
  const VerifyReport report = verify(plan_of(keep, {"query_proj=offload"}), keep);
  const auto json = nlohmann::json::parse(render_json(report));
  CHECK(json["schema"] == "spillway.verify/1");
  CHECK(json["agrees"] == false);
  CHECK(json["policy"]["query_proj"] == "offload");
  for (const char* key :
       {"total_device_bytes", "argument_bytes", "temp_bytes", "host_bytes", "d2h_bytes_per_step",
        "h2d_bytes_per_step", "dot_flops_per_step", "step_seconds"}) {
    CAPTURE(key);
    CHECK(json["figures"][key]["predicted"].is_number());
    CHECK(json["figures"][key]["compiled"].is_number());
    CHECK(json["figures"][key]["agrees"].is_boolean());
  }
  CHECK(json["figures"]["host_bytes"]["tolerance"] == 0);
  CHECK(json["not_as_planned"].size() == report.not_done.size());
  CHECK(json["causes"].size() == report.causes.size());
}

TEST_CASE("plans from one program of the corpus against the programs that XLA compiled") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile gb200 =
      value_or_fail(read_profile(testing::source_path("hw_profiles/gb200.yaml")));
  const NameList names =
      value_or_fail(read_names((*corpus / "l8b_b2_allsaved/names.json").string()));
  const auto load = [&](const std::string& program) {
    return testing::make_example(value_or_fail(read_program((*corpus / program).string())), names,
                                 gb200);
  };
  const PlanFile plan =
      plan_of(load("l8b_b2_allsaved"), {"decoder_layer_input=offload", "query_proj=offload",
                                        "key_proj=offload", "value_proj=offload"});
  SUBCASE("the policy of the plan agrees") {
    const VerifyReport report = verify(plan, load("l8b_b2_oorr"));
    CHECK(report.agrees());
    CHECK(differences_of(report).empty());
    CHECK(codes_of(report).empty());
  }
  SUBCASE("another policy differs by its names") {
    const VerifyReport report = verify(plan, load("l8b_b2_drrr"));
    CHECK_FALSE(report.agrees());
    CHECK(differences_of(report) == std::vector<std::string>{"decoder_layer_input: offload -> keep",
                                                             "query_proj: offload -> recompute",
                                                             "key_proj: offload -> recompute",
                                                             "value_proj: offload -> recompute"});
    for (const char* json : {"total_device_bytes", "host_bytes", "d2h_bytes_per_step",
                             "h2d_bytes_per_step", "dot_flops_per_step"}) {
      CAPTURE(json);
      CHECK_FALSE(figure(report, json).agrees());
    }
  }
  SUBCASE("a program of another batch is refused") {
    const Example other = load("l8b_b1_full");
    const auto report = make_verify_report(
        plan, "plan.yaml", other.program,
        {.names = other.names, .profile = other.profile, .topology = other.topology});
    CHECK_FALSE(report.ok());
  }
}

}  // namespace
}  // namespace spillway
