// The JSON of PlanAnswers: keys of schema spillway.plan/1.
#include <nlohmann/json.hpp>

#include "sim/report/case_text.h"
#include "sim/report/plan_answers.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json policy_json(const PlanResult& plan, const Policy& policy) {
  if (policy.empty()) return nullptr;
  Json json = Json::object();
  visit_policy(plan.handles, policy,
               [&](const std::string& name, std::string_view choice) { json[name] = choice; });
  return json;
}

template <typename Q>
Json optional_json(const std::optional<Q>& quantity) {
  return quantity ? Json(quantity->value()) : Json(nullptr);
}

Json moves_json(const PlanResult& plan, const PlanAnswers& answers) {
  Json json = Json::array();
  for (const MoveEffect& effect : answers.moves)
    json.push_back({{"name", plan.handles[effect.handle].name},
                    {"d2h_bytes_per_step", effect.device_to_host.value()},
                    {"h2d_bytes_per_step", effect.host_to_device.value()},
                    {"saved_at_peak_bytes", effect.saved_at_peak.value()},
                    {"host_bytes", effect.host.value()},
                    {"added_seconds", effect.added.value()},
                    {"link_seconds", effect.link.value()},
                    {"window_seconds", effect.window.value()},
                    {"load", effect.load()}});
  return json;
}

Json host_update_json(const PlanAnswers& answers) {
  if (!answers.host_update) return nullptr;
  const HostUpdate& update = *answers.host_update;
  return {{"seconds_at_least", update.total().value()},
          {"link_seconds", update.link.value()},
          {"memory_seconds", update.memory.value()},
          {"gradients_out_bytes", update.gradients_out.value()},
          {"parameters_in_bytes", update.parameters_in.value()},
          {"host_traffic_bytes", update.host_traffic.value()},
          {"memory_bytes_per_second", update.memory_rate.value()},
          {"memory_origin", name_of(answers.host_memory_origin.kind)},
          {"saved_bytes", update.saved.value()}};
}

Json unnamed_json(const std::vector<WorthSaving>& rows) {
  Json json = Json::array();
  for (const WorthSaving& row : rows) {
    Json values = Json::array();
    for (const UnnamedValue& value : row.values)
      values.push_back({{"instruction", value.instruction},
                        {"shape", value.shape},
                        {"bytes_per_layer", value.bytes_per_layer.value()},
                        {"total_bytes", value.total_bytes.value()},
                        {"source", value.source},
                        {"op_name", value.op_name}});
    json.push_back({{"values", values},
                    {"beside", row.beside},
                    {"with_names", row.with_names},
                    {"bytes", row.bytes.value()},
                    {"spared_seconds", row.spared().value()},
                    {"kernel_seconds", row.kernels.value()},
                    {"collective_seconds", row.collectives.value()},
                    {"saving_seconds", row.saving.value()},
                    {"not_run_again", row.not_run_again},
                    {"instead_of", row.instead_of},
                    {"simulated", Json(nullptr)}});
    if (row.simulated)
      json.back()["simulated"] = {
          {"step_seconds", row.simulated->step.value()},
          {"step_seconds_before", row.simulated->step_before.value()},
          {"peak_device_bytes_at_most", row.simulated->peak_device.value()}};
  }
  return json;
}

Json sensitivity_json(const PlanResult& plan, const Sensitivity& sensitivity) {
  Json cases = Json::array(), switches = Json::array();
  for (const TurnedCase& turned : sensitivity.cases)
    cases.push_back({{"what", name_of(turned.knob)},
                     {"factor", turned.factor},
                     {"policy", policy_json(plan, turned.best)},
                     {"step_seconds", turned.step.value()},
                     {"plan_step_seconds", turned.step_of_plan.value()},
                     {"plan_fits", turned.plan_fits},
                     {"plan_stays_best", turned.best == plan.best.policy}});
  for (const Switch& change : sensitivity.switches)
    switches.push_back({{"what", name_of(change.knob)},
                        {"factor", change.factor},
                        {"policy", policy_json(plan, change.to)}});
  return {{"cases", cases}, {"switches", switches}, {"policies_asked", sensitivity.policies_asked}};
}

Json confidence_json(const PlanResult& plan, const Confidence& sure) {
  const Doubts& doubts = sure.doubts;
  return {{"step_seconds_p10", sure.low.value()},
          {"step_seconds_p50", sure.middle.value()},
          {"step_seconds_p90", sure.high.value()},
          {"out_of_memory", sure.out_of_memory},
          {"rival", policy_json(plan, sure.rival)},
          {"rival_step_seconds", sure.rival_step.value()},
          {"rival_recomputes", sure.rival_recomputes},
          {"rival_fits", true},
          {"rival_is_faster", sure.loses},
          {"assumed",
           {{"kernels", doubts.kernels},
            {"link", doubts.link},
            {"link_origin", doubts.link_because},
            {"rewrite", doubts.rewrite},
            {"jitter", doubts.jitter},
            {"memory", doubts.memory},
            {"fragmentation", doubts.fragmentation}}}};
}

Json requirements_json(const PlanResult& plan, const Requirements& need) {
  Json break_even = Json::array();
  for (const BreakEven& row : need.break_even)
    break_even.push_back({{"what", row.name},
                          {"moving", policy_json(plan, row.moving)},
                          {"rival", policy_json(plan, row.rival)},
                          {"rival_step_seconds", row.rival_step.value()},
                          {"rival_fits", row.rival_fits},
                          {"link_factor", row.factor ? Json(*row.factor) : Json(nullptr)},
                          {"always", row.always}});
  return {{"hbm_bytes", need.hbm.value()},
          {"host_bytes", need.host.value()},
          {"smallest_fraction", need.smallest_fraction},
          {"tolerance_seconds", need.tolerance.value()},
          {"exposed_seconds", need.exposed.value()},
          {"d2h_bytes_per_second", optional_json(need.device_to_host)},
          {"h2d_bytes_per_second", optional_json(need.host_to_device)},
          {"exposed_with_both_seconds", need.exposed_with_both.value()},
          {"exposed_at_most_link_seconds", need.exposed_at_most_link.value()},
          {"break_even", break_even}};
}

Json sized_json(const PlanResult& plan, const PlanAnswers& answers) {
  Json json = Json::array();
  for (const SizedRequirements& sized : answers.sized) {
    PlanResult at = plan;  // as far as requirements_json asks
    at.handles = sized.handles;
    at.best = sized.outcome;
    Json row{{"size", size_text(sized.size)}};
    visit_figures(sized.outcome, [&row](const char* name, auto value) { row[name] = value; });
    row["need"] = requirements_json(at, sized.need);
    row["assumptions"] = sized.assumptions;
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> answers_json(const PlanResult& plan,
                                                              const PlanAnswers& answers) {
  const auto text = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  return {{"moves", text(moves_json(plan, answers))},
          {"host_update", text(host_update_json(answers))},
          {"unnamed", text(unnamed_json(answers.unnamed))},
          {"unnamed_instead", text(unnamed_json(answers.instead))},
          {"sensitivity", text(answers.sensitivity ? sensitivity_json(plan, *answers.sensitivity)
                                                   : Json(nullptr))},
          {"confidence",
           text(answers.confidence ? confidence_json(plan, *answers.confidence) : Json(nullptr))},
          {"need", text(answers.requirements ? requirements_json(plan, *answers.requirements)
                                             : Json(nullptr))},
          {"need_at_sizes", text(sized_json(plan, answers))}};
}

}  // namespace spillway
