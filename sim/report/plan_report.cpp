#include "sim/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "model/flags/known_flags.h"
#include "model/hardware/spelling.h"
#include "model/plan/check_plan.h"
#include "sim/report/case_text.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/exposed_text.h"
#include "sim/report/origin_text.h"
#include "sim/report/plan_flags_text.h"
#include "sim/report/table.h"
#include "sim/schedule/memory_scheduler.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

/// Enough to see what the policy leaves exposed; `simulate` shows more.
constexpr std::size_t kExposedRows = 6;

/// Rewritten programs against those that XLA compiled for the same policy: steps within -6.8 to
/// +6.1 % (docs/validation.md).
constexpr double kModelError = 0.07;

/// Baselines of the same policy in one, by all their names.
std::vector<NamedCase> distinct(const std::vector<NamedCase>& baselines) {
  std::vector<NamedCase> rows;
  for (const NamedCase& baseline : baselines) {
    const auto same = std::ranges::find_if(rows, [&baseline](const NamedCase& row) {
      return row.result.policy == baseline.result.policy;
    });
    if (same == rows.end())
      rows.push_back(baseline);
    else
      same->name += " = " + baseline.name;
  }
  return rows;
}

std::string cases_text(const PlanReport& report) {
  TextTable table(case_heads("policy"));
  const auto policy = [&](const PolicyCase& c) {
    return policy_text(report.plan.handles, c.policy);
  };
  table.add(
      case_row(report.plan.fits ? "best" : "closest", report.plan.best, policy(report.plan.best)));
  for (std::size_t k = 0; k < report.plan.alternatives.size(); ++k)
    table.add(case_row("next " + std::to_string(k + 1), report.plan.alternatives[k],
                       policy(report.plan.alternatives[k])));
  for (const NamedCase& baseline : distinct(report.plan.baselines))
    table.add(case_row(baseline.name, baseline.result, policy(baseline.result)));
  return table.text();
}

std::string settings_text(const std::string& title, const std::vector<Setting>& settings,
                          const std::string& prefix, const std::string& joint) {
  if (settings.empty()) return "";
  TextTable table({title, ""});
  for (const Setting& s : settings) table.add({prefix + s.name + joint + s.value, s.why});
  return table.text(0) + "\n";
}

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

/// What every answer starts with.
Json head_json(const PlanReport& report) {
  Json json;
  json["schema"] = "spillway.plan/1";
  json["program"] = {{"name", report.program_name}, {"path", report.path}};
  json["hardware"] = report.hardware;
  return json;
}

/// Names and paths come from the input, and need not be UTF-8.
std::string to_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> unnamed_residuals(const Evaluator& evaluator) {
  std::vector<std::string> unnamed;
  for (const Residual& residual : evaluator.residuals().residuals)
    if (residual.names.empty())
      unnamed.push_back(fmt::format("{} ({}, {})", residual.id, to_string(residual.slice),
                                    format_bytes(residual.total_bytes)));
  return unnamed;
}

std::string why_lines(const PlanReport& report) {
  TextTable table({"Why", "", ""});
  for (const Reason& reason : report.plan.reasons)
    table.add({reason.handle, std::string(name_of(reason.choice)), reason.text});
  return table.text(0);
}

/// Of a plan that does not fit, what `best` is.
std::string closest_text(const PlanResult& plan) {
  const Bytes least_hbm =
      std::ranges::min_element(plan.pareto, {}, &PolicyCase::peak_device)->peak_device;
  return fmt::format(
      "None of {} policies {}. {} misses {} in all: it needs {} of HBM (a fraction of {:.2f}) and "
      "{} of the host. The least HBM that any of them needs is {}.",
      plan.simulated, plan.proven ? "fits" : "simulated fits",
      plan.proven ? "The closest" : "The closest found",
      format_bytes(plan.best.fit.over_hbm + plan.best.fit.over_host),
      format_bytes(plan.best.peak_device), plan.best.fit.smallest_fraction,
      format_bytes(plan.best.host), format_bytes(least_hbm));
}

std::string bound_text(const PlanResult& plan) {
  if (!plan.fits) return closest_text(plan);
  if (plan.proven)
    return fmt::format("Best of all {} policies: none of the others is faster and fits.",
                       plan.simulated);
  return fmt::format("Best of {} policies simulated; no policy is faster than {} (gap {:.1f} %).",
                     plan.simulated, format_seconds(plan.lower_bound), plan.gap * 100);
}

/// The program as it was compiled; null when that is no row of the plan.
const PolicyCase* as_compiled(const PlanResult& plan) {
  const Policy compiled = compiled_policy(plan.handles);
  for (const NamedCase& baseline : plan.baselines)
    if (baseline.result.policy == compiled) return &baseline.result;
  return nullptr;
}

std::string fit_phrase(const PolicyCase& c) {
  return fmt::format("{} of HBM, {} of host memory, about {} a step", format_bytes(c.peak_device),
                     format_bytes(c.host), format_seconds(c.step));
}

/// The answer in a sentence or two, before anything else.
std::string verdict(const PlanReport& report) {
  const PlanResult& plan = report.plan;
  const PolicyCase* const compiled = as_compiled(plan);
  std::string text;
  if (compiled)
    text = compiled->fit.fits ? "Fits as compiled: " + fit_phrase(*compiled) + ".\n"
                              : "Does not fit as compiled: " + fit_text(*compiled) + ".\n";
  if (!plan.fits)
    return text + fmt::format("NOTHING FITS. The closest{}: {}: {}; {}.\n",
                              plan.proven ? "" : " found",
                              policy_text(plan.handles, plan.best.policy), fit_phrase(plan.best),
                              fit_text(plan.best));
  if (compiled && plan.best.policy == compiled->policy)
    return text + "Nothing faster was found: leave it as it is.\n";
  text +=
      "Best: " + policy_text(plan.handles, plan.best.policy) + ": " + fit_phrase(plan.best) + ".\n";
  if (!compiled || !compiled->fit.fits) return text;
  const double gain = (compiled->step - plan.best.step).value() / compiled->step.value();
  if (gain < kModelError)
    text += fmt::format(
        "That is {:.1f} % faster than as compiled, less than the model is sure of: moving nothing "
        "is as good.\n",
        100 * gain);
  return text;
}

std::string unnamed_lines(const PlanReport& report) {
  std::string text;
  for (const std::string& unnamed : report.unnamed)
    text += "Fixed, since it has no name: " + unnamed + "\n";
  return text;
}

/// What else is known of the program as compiled; errors stand on top.
std::string warning_lines(const PlanReport& report) {
  std::string text;
  for (const Diagnostic& diagnostic : report.diagnostics)
    if (diagnostic.severity != Severity::kError)
      text += fmt::format("Warning: [{}] {}\n", diagnostic.code, diagnostic.message());
  return text;
}

std::string pgle_lines(const PlanReport& report) {
  if (!report.pgle) return "";
  const PgleReport& pgle = *report.pgle;
  std::string text = fmt::format(
      "Profile for XLA's scheduler, {}: {} costs, {} copies across the "
      "host link.\n  {}.\n",
      pgle.path, pgle.costs, pgle.host_copies, pgle.advice.text);
  for (const Setting& flag : pgle.advice.flags)
    text += fmt::format("  --{}={}\n", flag.name, flag.value);
  return text +
         "  It has the names of this very program: compile the same source with the same "
         "flags and XLA. What XLA then made of it, `spillway simulate` and `inspect` say of "
         "the new dump.\n";
}

std::string assumed_text(const PlanReport& report) {
  std::string text;
  for (const std::string& assumption : report.best_run.assumptions)
    text += "Assumed: " + assumption + "\n";
  if (report.jaxlib_is_assumed)
    text += fmt::format("Assumed: jaxlib {}, for want of --jaxlib\n", to_string(report.jaxlib));
  return text;
}

/// Of a program without handles, its one policy.
std::string only_case_text(const PlanReport& report) {
  const PolicyCase& only = report.plan.best;
  const bool foreign_names = !report.unnamed.empty() && !report.unmatched.empty();
  return fmt::format(
             "Nothing to decide: {}.\nAs compiled: {} a step, {} of HBM, {} on the host: {}\n",
             foreign_names
                 ? "no name of the sidecar fits a residual of this program"
                 : "the program holds no stack of residuals that a policy could move "
                   "(layers not scanned, or nothing saved); what it copies stays as it is",
             format_seconds(only.step), format_bytes(only.peak_device), format_bytes(only.host),
             fit_text(only)) +
         (report.advice.flags.empty() ? "" : "\n" + flags_text(report)) + pgle_lines(report) +
         unknown_text(report.best_run) + unnamed_lines(report) + warning_lines(report) +
         assumed_text(report);
}

/// What to set, for a plan that can be carried out.
std::string settings_text(const PlanReport& report) {
  const Advice& advice = report.advice;
  std::string text = flags_text(report);
  text += settings_text("Environment", advice.environment, "", "=");
  text += settings_text("MaxText", advice.maxtext, "", ": ");
  if (!advice.jax_policy.empty()) text += "JAX\n  " + advice.jax_policy + "\n\n";
  return text;
}

/// Which jaxlib the plan is for, and what is wrong with the user's flags there.
std::optional<Error> settle_version(PlanReport& report, const Program& program,
                                    const NameList& names, const HardwareProfile& profile,
                                    const FlagRequest& flags) {
  const auto said = flags.jaxlib ? flags.jaxlib : names.jaxlib;
  report.jaxlib = said.value_or(newest_probed());
  report.jaxlib_is_assumed = !said;
  report.flag_context = {report.jaxlib, gpu_model(profile.device), has_only_common_parts(program)};
  if (flags.flags) report.user_settings = settle(*flags.flags);
  if (const auto wrong = check_version(report.jaxlib)) {
    if (flags.jaxlib || flags.flags) return wrong;
    report.no_flags_because =
        wrong->text + ", and a flag that it does not know would end the process";
  } else if (flags.flags) {
    report.user_flags = check_flags(*flags.flags, report.flag_context);
  }
  return std::nullopt;
}

AdviceContext advice_context(const PlanReport& report) {
  AdviceContext context;
  if (report.no_flags_because.empty()) context.jaxlib = report.jaxlib;
  context.user_flags = report.user_settings;
  context.planned = report.best_run.memory;
  context.pool = report.budget.pool;
  context.has_names = report.has_names;
  context.unmatched = report.unmatched;
  return context;
}

}  // namespace

Result<PlanReport> make_plan_report(const Program& program, const Schedule& schedule,
                                    const HardwareProfile& profile, const Topology& topology,
                                    const NameList& names, const Budget& budget,
                                    const PlanOptions& options, const FlagRequest& flags,
                                    std::optional<CopyStreams> copy_streams) {
  PlanReport report;
  if (auto wrong = settle_version(report, program, names, profile, flags)) return *wrong;
  report.program_name = program.name;
  report.path = program.path;
  report.modules_in_folder = program.modules_in_folder;
  report.hardware = profile.id;
  report.budget = budget;
  report.has_names = !names.names.empty();
  const Evaluator evaluator(program, schedule, profile, topology, names, report.budget,
                            copy_streams);
  Result<PlanResult> plan = make_plan(evaluator, options);
  if (!plan.ok()) return plan.error();
  report.plan = std::move(plan).value();
  Result<SimResult> best_run = evaluator.simulate_policy(report.plan.best.policy);
  if (!best_run.ok()) return best_run.error();
  report.best_run = std::move(best_run).value();
  report.unmatched = evaluator.residuals().unmatched_names;
  report.planned = evaluator.rewrite(report.plan.best.policy);
  const AdviceContext context = advice_context(report);
  report.advice = advise(report.plan, context);
  add_simulated_flags(report, evaluator);
  if (report.has_names) report.unnamed = unnamed_residuals(evaluator);
  const MemoryReport compiled_memory = make_memory_report(program, evaluator.memory());
  DiagnosisInput compiled{program, compiled_memory, evaluator.residuals(), evaluator.memory()};
  compiled.jaxlib = names.jaxlib;
  // The order only matters where layers are not scanned, and then there is nothing to decide.
  if (report.plan.handles.empty() && program.instruction_count() <= kMostReordered)
    compiled.order_cost = compiled_memory.totals.total_device -
                          find_minimal_order(program, evaluator.memory()).total_device;
  for (Diagnostic& diagnostic : diagnose(compiled))
    if (diagnostic.severity != Severity::kInfo || diagnostic.code == "guessed-names")
      report.diagnostics.push_back(std::move(diagnostic));
  if (report.plan.fits) report.objections = check_plan(report.planned, report.budget);
  return report;
}

PgleReport make_pgle_report(const PlanReport& report, const PgleProfile& profile,
                            const std::string& path) {
  const PlanResult& plan = report.plan;
  const SimResult& run = report.best_run;
  const PgleSituation situation{.is_planned = plan.best.policy == compiled_policy(plan.handles),
                                .kernels = run.compute_busy,
                                .link = run.device_to_host_busy + run.host_to_device_busy,
                                .context = report.flag_context,
                                .users = report.user_settings};
  return {path, profile.costs.size(), profile.copies.size(), advise_pgle(profile, situation, path)};
}

std::string render_text(const PlanReport& report) {
  const PlanResult& plan = report.plan;
  std::string text = fmt::format("{} on {}\n{}\n", report.program_name, report.hardware,
                                 origin_text(report.path, report.modules_in_folder));
  text += fmt::format("Budget: {} of HBM ({:.2f} of {}), {} of host memory a device ({})\n\n",
                      format_bytes(report.budget.pool), report.budget.fraction,
                      format_bytes(report.budget.hbm), format_bytes(report.budget.host),
                      report.budget.host_origin);
  for (const Diagnostic& diagnostic : report.diagnostics)
    if (diagnostic.severity == Severity::kError) text += to_text(diagnostic) + "\n";
  if (plan.handles.empty()) return text + only_case_text(report) + user_flags_tail(report);
  text += verdict(report) + "\n";
  text += cases_text(report) + "\n" + bound_text(plan) + "\n\n" + why_lines(report) + "\n";
  if (plan.fits)
    text += settings_text(report);
  else if (flags_make_it_fit(report))
    text += flags_text(report);
  if (report.pgle) text += pgle_lines(report) + "\n";
  text += user_flags_text(report);
  text += exposed_text(report.planned, report.best_run, kExposedRows);
  text += unknown_text(report.best_run);
  text += unnamed_lines(report);
  if (!plan.best.fit.beside_reserve && plan.best.fit.smallest_fraction <= 1)
    text += fmt::format(
        "Warning: a pool of {:.2f} leaves less than the {} that context, communication and "
        "libraries need beside it.\n",
        plan.best.fit.smallest_fraction, format_bytes(report.budget.reserve));
  for (const std::string& objection : report.objections)
    text += "Warning: the check of the plan objects: " + objection + "\n";
  text += warning_lines(report);
  if (!report.has_names)
    text +=
        "Residuals are called r0, r1, …; with --names they have names, and what to set is "
        "printed.\n";
  text += fmt::format(
      "Steps are simulated; programs changed by the rule below came within {:.0f} % of those XLA "
      "compiled. Recomputing is not weighed.\n",
      100 * kModelError);
  text +=
      "Rule: an offload starts after its producer and ends with the loop body; a reload starts at "
      "the top of the body and ends before its first use.\n";
  return text + assumed_text(report);
}

Result<Explanation> explain(const PlanReport& report, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t k = 0; k < report.plan.handles.size(); ++k) {
    const Handle& handle = report.plan.handles[k];
    known.push_back(handle.name);
    known.insert(known.end(), handle.aliases.begin(), handle.aliases.end());
    if (handle.name != name && std::ranges::find(handle.aliases, name) == handle.aliases.end())
      continue;
    const Reason& reason = report.plan.reasons[k];
    return Explanation{name, reason.choice, handle.bytes, handle.residuals.size(), reason.text};
  }
  if (std::ranges::find(report.unmatched, name) != report.unmatched.end())
    return Explanation{name, std::nullopt, Bytes(0), 0,
                       "no residual of this program carries that name: it is recomputed, or "
                       "backward does not need it"};
  known.insert(known.end(), report.unmatched.begin(), report.unmatched.end());
  Error error{ErrorKind::kUsage, "--explain knows no name " + spillway::quoted(name), {}, "", ""};
  const std::string_view nearest = nearest_name(name, known);
  if (!nearest.empty()) error.advice = fmt::format("did you mean '{}'? ", nearest);
  error.advice += known.empty() ? "the program holds no residual that a policy could move"
                                : fmt::format("known are {}", fmt::join(known, ", "));
  return error;
}

std::string render_text(const Explanation& e) {
  if (!e.choice) return fmt::format("{}: {}\n", e.name, e.text);
  return fmt::format("{}: {}, {} on one device, {} residual(s)\n  {}\n", e.name, name_of(*e.choice),
                     format_bytes(e.bytes), e.residuals, e.text);
}

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
                    {"host_bytes", report.budget.host.value()}};
  json["fits"] = plan.fits;
  json["best"] = case_json(plan.handles, plan.best);
  json["lower_bound_seconds"] = plan.lower_bound.value();
  json["gap"] = plan.gap;
  json["proven"] = plan.proven;
  json["policies_simulated"] = plan.simulated;
  json["alternatives"] = Json::array();
  for (const PolicyCase& c : plan.alternatives)
    json["alternatives"].push_back(case_json(plan.handles, c));
  json["baselines"] = Json::array();
  for (const NamedCase& b : plan.baselines) {
    Json row = case_json(plan.handles, b.result);
    row["name"] = b.name;
    json["baselines"].push_back(std::move(row));
  }
  json["pareto"] = Json::array();
  for (const PolicyCase& c : plan.pareto) json["pareto"].push_back(case_json(plan.handles, c));
  json["jaxlib"] = to_string(report.jaxlib);
  json["flags"] = settings_json(report.advice.flags);
  json["flag_effects"] = flag_effects_json(report.advice.flags);
  json["no_flags_because"] = report.no_flags_because;
  json["flag_sets_simulated"] = report.flag_search.tried;
  json["no_flags_simulated_because"] = report.flag_search.not_tried_because;
  json["user_flags"] = Json(nullptr);
  if (report.user_flags) json["user_flags"] = diagnostics_json(*report.user_flags);
  json["environment"] = settings_json(report.advice.environment);
  json["maxtext"] = settings_json(report.advice.maxtext);
  json["jax_policy"] = report.advice.jax_policy;
  if (report.pgle)
    json["pgle"] = {{"path", report.pgle->path},
                    {"costs", report.pgle->costs},
                    {"host_copies", report.pgle->host_copies},
                    {"recommended", report.pgle->advice.recommended},
                    {"flags", settings_json(report.pgle->advice.flags)},
                    {"text", report.pgle->advice.text}};
  json["reasons"] = Json::array();
  for (const Reason& r : plan.reasons)
    json["reasons"].push_back(
        {{"name", r.handle}, {"choice", name_of(r.choice)}, {"text", r.text}});
  json["fixed"] = report.unnamed;
  json["objections"] = report.objections;
  json["diagnostics"] = diagnostics_json(report.diagnostics);
  json["unknown"] = report.best_run.unknown;
  json["assumptions"] = report.best_run.assumptions;
  return to_text(json);
}

}  // namespace spillway
