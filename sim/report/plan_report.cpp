#include "sim/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/base/spelling.h"
#include "model/flags/known_flags.h"
#include "model/plan/check_plan.h"
#include "sim/report/plan_flags_text.h"
#include "sim/schedule/memory_scheduler.h"

namespace spillway {
namespace {

std::vector<std::string> unnamed_residuals(const Evaluator& evaluator) {
  std::vector<std::string> unnamed;
  for (const Residual& residual : evaluator.residuals().residuals)
    if (residual.names.empty())
      unnamed.push_back(fmt::format("{} ({}, {})", residual.id, to_string(residual.slice),
                                    format_bytes(residual.total_bytes)));
  return unnamed;
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

/// The best policy's program, and one step of it in detail.
std::optional<Error> run_best(const Evaluator& evaluator, PlanReport& report) {
  Result<Program> planned = evaluator.rewrite_planned(report.plan.best.policy, report.plan.order);
  if (!planned.ok()) return planned.error();
  report.planned = std::move(planned).value();
  Result<SimResult> run = evaluator.simulate_program(report.planned);
  if (!run.ok()) return run.error();
  report.best_run = std::move(run).value();
  return std::nullopt;
}

}  // namespace

Result<PlanReport> make_plan_report(const Program& program, const Schedule& schedule,
                                    const HardwareProfile& profile, const Topology& topology,
                                    const NameList& names, const Budget& budget,
                                    const PlanOptions& options, const FlagRequest& flags,
                                    std::optional<CopyStreams> copy_streams,
                                    const AnswerRequest& asked,
                                    const std::optional<Anchor>& anchor) {
  PlanReport report;
  if (auto wrong = settle_version(report, program, names, profile, flags)) return *wrong;
  report.program_name = program.name;
  report.path = program.path;
  report.modules_in_folder = program.modules_in_folder;
  report.hardware = profile.id;
  report.budget = budget;
  report.has_names = !names.names.empty();
  const Evaluator evaluator(
      program, schedule, profile, topology, names, report.budget,
      {.copy_streams = copy_streams, .base = anchor ? &anchor->costs : nullptr});
  report.anchor = anchor;
  PlanOptions ordered = options;
  ordered.ranks = !anchor || anchor->ranks();
  ordered.order = schedule_settings(report.user_settings, report.flag_context);
  Result<PlanResult> plan = make_plan(evaluator, ordered);
  if (!plan.ok()) return plan.error();
  report.plan = std::move(plan).value();
  if (!report.plan.ranked) return report;
  Result<PlanAnswers> answers = make_plan_answers(evaluator, report.plan, asked, options.threads);
  if (!answers.ok()) return answers.error();
  report.answers = std::move(answers).value();
  report.unmatched = evaluator.residuals().unmatched_names;
  if (auto wrong = run_best(evaluator, report)) return *wrong;
  const AdviceContext context = advice_context(report);
  report.advice = advise(report.plan, context);
  add_simulated_flags(report, evaluator);
  if (report.has_names) report.unnamed = unnamed_residuals(evaluator);
  const MemoryReport compiled_memory = make_memory_report(program, evaluator.memory());
  DiagnosisInput compiled{program, compiled_memory, evaluator.residuals(), evaluator.memory()};
  compiled.jaxlib = names.jaxlib;
  // The order only matters where layers are not scanned, and then there is nothing to decide.
  if (std::ranges::none_of(report.plan.handles, is_name) &&
      program.instruction_count() <= kMostReordered)
    compiled.order_cost = compiled_memory.totals.total_device -
                          find_minimal_order(program, evaluator.memory()).total_device;
  const bool is_other_policy = report.plan.best.policy != compiled_policy(report.plan.handles);
  for (Diagnostic& diagnostic : diagnose(compiled)) {
    const bool is_about_names = diagnostic.code == "guessed-names";
    if (diagnostic.severity == Severity::kInfo && !is_about_names) continue;
    // The plan may do what it advises.
    if (is_other_policy && !is_about_names) diagnostic.what = "As compiled: " + diagnostic.what;
    report.diagnostics.push_back(std::move(diagnostic));
  }
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

Result<Explanation> explain(const PlanReport& report, const std::string& asked) {
  // HLO text writes a % in front of names.
  const std::string name = asked.starts_with('%') ? asked.substr(1) : asked;
  std::vector<std::string> known;
  for (std::size_t k = 0; k < report.plan.handles.size(); ++k) {
    const Handle& handle = report.plan.handles[k];
    known.push_back(handle.name);
    known.insert(known.end(), handle.aliases.begin(), handle.aliases.end());
    if (handle.name != name && std::ranges::find(handle.aliases, name) == handle.aliases.end())
      continue;
    const Reason& reason = report.plan.reasons[k];
    std::string text = reason.text();
    for (const MoveEffect& effect : report.answers.moves)
      if (effect.handle == k) text += "\n  " + move_text(effect);
    return Explanation{name, reason.choice, handle.bytes,
                       handle.residuals.size() + handle.unrolled.size(), text};
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

}  // namespace spillway
