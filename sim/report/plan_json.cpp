// A plan for scripts: the JSON of PlanReport and of its explanations, schema spillway.plan/1.
#include <nlohmann/json.hpp>

#include "sim/report/anchor_text.h"
#include "sim/report/case_text.h"
#include "sim/report/plan_report.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json flag_effects_json(const std::vector<Setting>& flags) {
  Json json = Json::array();
  for (const Setting& flag : flags)
    json.push_back(
        {{"name", flag.name},
         {"value", flag.value},
         {"why", flag.why},
         {"step_seconds_change", flag.effect ? Json(flag.effect->step.value()) : Json(nullptr)},
         {"peak_device_bytes_change",
          flag.effect ? Json(flag.effect->peak_device.value()) : Json(nullptr)}});
  return json;
}

Json settings_json(const std::vector<Setting>& settings) {
  Json json = Json::object();
  for (const Setting& s : settings) json[s.name] = s.value;
  return json;
}

Json diagnostics_json(const std::vector<Diagnostic>& diagnostics) {
  Json json = Json::array();
  for (const Diagnostic& d : diagnostics)
    json.push_back({{"code", d.code}, {"severity", name_of(d.severity)}, {"message", d.message()}});
  return json;
}

Json case_json(const std::vector<Handle>& handles, const PolicyCase& c) {
  Json policy = Json::object();
  visit_policy(handles, c.policy,
               [&](const std::string& name, std::string_view choice) { policy[name] = choice; });
  Json json{{"policy", policy}, {"batch", nullptr}, {"seq", nullptr}, {"flags", Json::object()}};
  visit_figures(c, [&](const char* name, auto value) { json[name] = value; });
  return json;
}

Json baselines_json(const PlanResult& plan) {
  Json json = Json::array();
  for (const NamedCase& b : plan.baselines) {
    Json row = case_json(plan.handles, b.result);
    row["name"] = b.name;
    json.push_back(std::move(row));
  }
  return json;
}

/// What every answer starts with.
Json head_json(const PlanReport& report) {
  Json json;
  json["schema"] = "spillway.plan/1";
  json["program"] = {{"name", report.program_name}, {"path", report.path}};
  json["hardware"] = report.hardware;
  if (report.anchor) json["anchor"] = Json::parse(anchor_json(*report.anchor));
  return json;
}

/// Names and paths come from the input, and need not be UTF-8.
std::string to_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string render_json(const PlanReport& report, const Explanation& e) {
  Json json = head_json(report);
  json["fits"] = report.plan.fits;
  json["explain"] = {{"name", e.name},
                     {"choice", e.choice ? Json(name_of(*e.choice)) : Json(nullptr)},
                     {"bytes", e.bytes.value()},
                     {"residuals", e.residuals},
                     {"text", e.text}};
  return to_text(json);
}

std::string render_json(const PlanReport& report) {
  const PlanResult& plan = report.plan;
  Json json = head_json(report);
  json["budget"] = {{"pool_bytes", report.budget.pool.value()},
                    {"hbm_bytes", report.budget.hbm.value()},
                    {"fraction", report.budget.fraction},
                    {"reserve_bytes", report.budget.reserve.value()},
                    {"usable_bytes", report.budget.room().value()},
                    {"host_bytes", report.budget.host.value()},
                    {"devices_per_node", report.budget.devices_per_node}};
  if (report.budget.block) json["budget"]["block_bytes"] = report.budget.block->value();
  if (report.budget.node_host) json["budget"]["node_host_bytes"] = report.budget.node_host->value();
  if (!plan.ranked) {
    json["best"] = Json(nullptr);
    json["baselines"] = baselines_json(plan);
    return to_text(json);
  }
  json["fits"] = plan.fits;
  json["best"] = case_json(plan.handles, plan.best);
  json["lower_bound_seconds"] = plan.lower_bound.value();
  json["gap"] = plan.gap;
  json["proven"] = plan.proven;
  json["policies"] = plan.policies;
  json["policies_simulated"] = plan.simulated;
  json["alternatives"] = Json::array();
  for (const PolicyCase& c : plan.alternatives)
    json["alternatives"].push_back(case_json(plan.handles, c));
  json["baselines"] = baselines_json(plan);
  json["pareto"] = Json::array();
  for (const PolicyCase& c : plan.pareto) json["pareto"].push_back(case_json(plan.handles, c));
  json["jaxlib"] = to_string(report.jaxlib);
  json["flags"] = settings_json(report.advice.flags);
  json["flag_effects"] = flag_effects_json(report.advice.flags);
  json["no_flags_because"] = report.no_flags_because;
  json["flag_sets_simulated"] = report.flag_search.tried;
  json["no_flags_simulated_because"] = report.flag_search.not_tried_because;
  json["with_profile"] = Json(nullptr);
  if (report.flag_search.with_profile)
    json["with_profile"] = case_json(plan.handles, *report.flag_search.with_profile);
  json["user_flags"] = Json(nullptr);
  if (report.user_flags) json["user_flags"] = diagnostics_json(*report.user_flags);
  json["environment"] = settings_json(report.advice.environment);
  json["maxtext"] = settings_json(report.advice.maxtext);
  json["jax_policy"] = report.advice.jax_policy;
  json["jax_state"] = report.advice.jax_state;
  if (report.pgle)
    json["pgle"] = {{"path", report.pgle->path},
                    {"costs", report.pgle->costs},
                    {"host_copies", report.pgle->host_copies},
                    {"recommended", report.pgle->advice.recommended},
                    {"flags", settings_json(report.pgle->advice.flags)},
                    {"text", report.pgle->advice.text}};
  json["if_scan_is_split"] = Json(nullptr);
  if (plan.split)
    json["if_scan_is_split"] = {{"name", plan.split->handle},
                                {"choice", name_of(plan.split->choice)},
                                {"layers", plan.split->layers},
                                {"of_layers", plan.split->of_layers},
                                {"step_seconds", plan.split->step.value()},
                                {"peak_device_bytes", plan.split->peak_device.value()},
                                {"host_bytes", plan.split->host.value()}};
  json["by_layer"] = Json(nullptr);
  if (plan.by_layer) {
    json["by_layer"] = case_json(plan.by_layer->handles, plan.by_layer->outcome);
    json["by_layer"]["name"] = plan.by_layer->handle;
    json["by_layer"]["choice"] = name_of(plan.by_layer->choice);
    json["by_layer"]["layers"] = plan.by_layer->layers;
    json["by_layer"]["of_layers"] = plan.by_layer->of_layers;
  }
  json["reasons"] = Json::array();
  for (const Reason& r : plan.reasons)
    json["reasons"].push_back(
        {{"name", r.handle}, {"choice", name_of(r.choice)}, {"text", r.text()}});
  for (const auto& [key, value] : answers_json(plan, report.answers))
    json[key] = Json::parse(value);
  json["fixed"] = report.unnamed;
  json["objections"] = report.objections;
  json["diagnostics"] = diagnostics_json(report.diagnostics);
  json["unknown"] = report.best_run.unknown;
  json["assumptions"] = report.best_run.assumptions;
  if (report.plan.order.scheduler.goes_by_profile())
    json["assumptions"].push_back(kProfileStandsIn);
  return to_text(json);
}

}  // namespace spillway
