// spillway whatif PROGRAM --hw P [--set NAME=CHOICE[,CHOICE…]] … [--flag NAME=VALUE[,VALUE…]] …
//                 [--second DUMP --batch-of-dumps A,B --batch X[,X…]]     (or --seq-of-dumps,
//                 --seq)
//                 [--accumulation N[,N…]] [--names F] [--jaxlib V]
//                 [--hbm-limit B | --mem-fraction f] [--host-limit B] [--shard I/N]
//                 [--profile FILE [--measured-step TIME]] [--out PLAN.yaml] [--json]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/jaxlib_option.h"
#include "cli/load_step.h"
#include "cli/output_file.h"
#include "cli/plan_file_option.h"
#include "cli/progress.h"
#include "cli/question_stamp.h"
#include "cli/run_profile_option.h"
#include "cli/shard_option.h"
#include "cli/size_options.h"
#include "model/base/parallel.h"
#include "model/flags/check_flags.h"
#include "model/flags/flag_names.h"
#include "model/flags/known_flags.h"
#include "model/spec/read_step.h"
#include "sim/lowering/device_streams.h"
#include "sim/model_step.h"
#include "sim/planner/policy_choices.h"
#include "sim/report/case_text.h"
#include "sim/report/whatif_report.h"

namespace spillway {
namespace {

struct WhatIfOptions {
  StepOptions step;
  std::vector<std::string> sets, flags;
  std::string shard;
  std::string out;
  SizeOptions sizes;
  RunProfileOptions run;
  bool json = false;
};

/// The sets of flags to try.
Result<std::vector<FlagSettings>> read_cases(const WhatIfOptions& options,
                                             const FlagContext& context) {
  if (auto wrong = check_version(context.jaxlib)) return *wrong;
  std::vector<FlagChoice> choices;
  for (const std::string& text : options.flags) {
    Result<FlagChoice> choice = parse_flag_choice(text, context);
    if (!choice.ok()) return choice.error();
    choices.push_back(std::move(choice).value());
  }
  return combine(choices);
}

/// What becomes of names and of some of their layers.
Result<std::vector<NameChoice>> read_name_choices(const WhatIfOptions& options) {
  std::vector<NameChoice> wishes;
  for (const std::string& text : options.sets) {
    Result<NameChoice> wish = parse_name_choice(text);
    if (!wish.ok()) return wish.error();
    wishes.push_back(std::move(wish).value());
  }
  return wishes;
}

/// The policies to try; the compiled one where none is asked for, or that of the configuration.
Result<PolicyCases> make_policies(const std::vector<NameChoice>& wishes, const Evaluator& evaluator,
                                  const NameList& names, const std::optional<StepSpec>& spec) {
  for (const NameChoice& wish : wishes)
    if (const auto wrong = check_state_name(wish.name, evaluator.handles(), evaluator.state()))
      return *wrong;
  if (const auto wrong = check_layers(wishes, evaluator.handles(), evaluator.unrolled()))
    return *wrong;
  std::vector<Handle> handles = evaluator.handles();
  if (spec) {
    const Policy configured = configured_policy(*spec, handles);
    for (std::size_t k = 0; k < handles.size(); ++k) handles[k].as_compiled = configured[k];
  }
  return combine(wishes, handles, names, kMostPolicies);
}

void add_findings(const std::vector<Diagnostic>& found, WhatIfReport& result) {
  for (const Diagnostic& finding : found)
    if (std::ranges::find(result.findings, finding.what, &Diagnostic::what) ==
        result.findings.end())
      result.findings.push_back(finding);
}

void add_assumption(const std::string& said, WhatIfReport& result) {
  if (std::ranges::find(result.assumptions, said) == result.assumptions.end())
    result.assumptions.push_back(said);
}

/// Every policy under every set of flags of a step of one size; `handles` are set where it is
/// another program than the given one.
std::optional<Error> run_cases(const Evaluator& evaluator, const std::vector<Policy>& policies,
                               const std::vector<FlagSettings>& cases, const FlagContext& context,
                               const StepSize& size,
                               const std::shared_ptr<const std::vector<Handle>>& handles,
                               const Shard& shard, WhatIfReport& result) {
  for (const FlagSettings& flags : cases) {
    add_findings(check_flags(to_flag_text(flags), context), result);
    const auto settings = schedule_settings(flags, context);
    if (!settings)
      return usage_error("whether XLA hides latencies on " + result.hardware + " is not known",
                         "say so: --flag " + std::string(flag::kLatencyHiding) + "=true");
    if (settings->scheduler.goes_by_profile())
      add_assumption(std::string(kProfileStandsIn), result);
    std::vector<const Policy*> ours;
    for (const Policy& policy : policies)
      if (shard.owns(result.cases_dealt++)) ours.push_back(&policy);
    std::vector<std::optional<Result<PolicyCase>>> outcomes(ours.size());
    Progress progress(ours.size(), "cases");
    for_each_piece(ours.size(), useful_threads(), [&](std::size_t k) {
      outcomes[k] = evaluator.evaluate(*ours[k], *settings);
      progress.advance();
    });
    for (std::size_t k = 0; k < ours.size(); ++k) {
      if (!outcomes[k]->ok()) return outcomes[k]->error();
      result.cases.push_back({{*ours[k], flags, size}, *std::move(*outcomes[k]), handles});
    }
  }
  return std::nullopt;
}

/// The step as compiled in the order that all cases are in, where that can be had.
std::optional<PolicyCase> order_again(const Evaluator& evaluator, const FlagContext& context) {
  const auto settings = schedule_settings({}, context);
  if (!settings) return std::nullopt;
  auto again = evaluator.evaluate(compiled_policy(evaluator.handles()), *settings);
  return again.ok() ? std::optional(std::move(again).value()) : std::nullopt;
}

/// Names that may stand at the wrong values.
void warn_of_guesses(const ResidualTable& table, WhatIfReport& result) {
  std::string guessed;
  for (const Residual& residual : table.residuals)
    if (residual.evidence == NameEvidence::kGuess)
      guessed += (guessed.empty() ? "" : ", ") + joined_names(residual);
  if (!guessed.empty())
    add_findings({{"guessed-names", Severity::kWarning,
                   guessed + ": several values have the shape of these names, and not as many as "
                             "there are names, or some of them are on the host; they were matched "
                             "in order",
                   "", "inspect --names lists who is who; a sidecar of this very program is sure"}},
                 result);
}

/// Ordering a finished program again should give what it has.
void warn_of_order(WhatIfReport& result) {
  const PolicyCase& again = result.again           ? *result.again
                            : result.cases.empty() ? result.as_given
                                                   : result.cases.front().result;
  if (again.policy != result.as_given.policy || result.as_given.step == Seconds(0)) return;
  constexpr double kFar = 0.05;
  const double step = ratio(again.step, result.as_given.step) - 1;
  const double hbm = ratio(again.peak_device, result.as_given.peak_device) - 1;
  if (std::abs(step) < kFar && std::abs(hbm) < kFar) return;
  add_findings(
      {{"order-differs", Severity::kWarning,
        fmt::format("ordered again, the program as compiled comes to {:+.1f} % of step and "
                    "{:+.1f} % of HBM",
                    100 * step, 100 * hbm),
        "it was compiled under other flags or another memory limit, or XLA's order is not "
        "met here: compare cases with each other, and take their HBM with that grain of "
        "salt",
        ""}},
      result);
}

/// The cases of every size that is asked for.
std::optional<Error> run_sizes(const WhatIfOptions& options, const LoadedStep& loaded,
                               const std::vector<NameChoice>& wishes,
                               const std::vector<FlagSettings>& cases, const FlagContext& context,
                               const Shard& shard, WhatIfReport& result) {
  const auto steps = read_sized_steps(options.sizes, loaded.program, loaded.names);
  if (!steps.ok()) return steps.error();
  const auto& [profile, topology] = loaded.machine;
  for (const SizedStep& step : *steps) {
    const Evaluator evaluator(step.program, step.schedule, profile, topology, step.names,
                              loaded.budget,
                              {.copy_streams = loaded.copy_streams_of(step.program),
                               .base = result.anchor ? &result.anchor->costs : nullptr,
                               .split = groups_of(wishes)});
    const auto policies = make_policies(wishes, evaluator, step.names, {});
    if (!policies.ok()) return policies.error();
    add_findings(policies->findings, result);
    const auto handles = std::make_shared<const std::vector<Handle>>(evaluator.handles());
    if (auto wrong = run_cases(evaluator, policies->policies, cases, context, step.size, handles,
                               shard, result))
      return wrong;
    for (const std::string& said : step.assumptions) add_assumption(said, result);
  }
  return std::nullopt;
}

/// What a program made from a configuration stands on.
void add_assumptions(const StepSpec& spec, WhatIfReport& result) {
  result.assumptions.push_back(
      "made from the model's configuration: \"as compiled\" is everything saved, and a case "
      "without "
      "--set is remat_policy " +
      spec.policy);
  for (const std::string& said : spec.assumptions) result.assumptions.push_back(said);
}

/// The one case that was asked for, as a plan.
Result<PlanFile> to_plan_file(const WhatIfOptions& options, const LoadedStep& loaded,
                              const Evaluator& evaluator, const FlagContext& context,
                              const WhatIfReport& result, const WhatIfOutcome& outcome) {
  const Policy& policy = outcome.what.policy;
  const FlagSettings& flags = outcome.what.flags;
  const Result<Program> step = evaluator.rewrite(policy, *schedule_settings(flags, context));
  if (!step.ok()) return step.error();
  const Result<SimResult> run = evaluator.simulate_program(*step);
  if (!run.ok()) return run.error();
  PlanResult plan;
  plan.handles = evaluator.handles();
  plan.best = outcome.result;
  const Advice advice = advise(plan, {.jaxlib = context.jaxlib,
                                      .user_flags = flags,
                                      .planned = run->memory,
                                      .pool = loaded.budget.pool,
                                      .has_names = !loaded.names.names.empty(),
                                      .unmatched = evaluator.residuals().unmatched_names});
  return make_plan_file(plan_file_context(options.step, loaded, result.anchor), plan.handles,
                        policy, flags, outcome.result.fit.fits,
                        {*step, text_schedule(*step).value(), *run}, advice);
}

/// Writes the plan of what was answered, where it is asked for.
int write_plan(const WhatIfOptions& options, const LoadedStep& loaded, const Evaluator& evaluator,
               const FlagContext& context, const WhatIfReport& result) {
  if (options.out.empty()) return kDone;
  // Flags bring the case without them along, to compare with.
  std::vector<const WhatIfOutcome*> asked;
  for (const WhatIfOutcome& outcome : result.cases)
    if (options.flags.empty() || !outcome.what.flags.empty()) asked.push_back(&outcome);
  if (asked.size() != 1)
    return report(
        usage_error("--out is for one case, and these are " + std::to_string(asked.size()),
                    "give one choice for each name, and one value for each flag"));
  const Result<PlanFile> plan =
      to_plan_file(options, loaded, evaluator, context, result, *asked.front());
  return plan.ok() ? write_plan_file(options.out, *plan) : report(plan.error());
}

/// Which part of the answer this is, and of which question.
std::optional<ShardLabel> label_part(const WhatIfOptions& options, const Shard& shard,
                                     const LoadedStep& loaded, std::size_t cases) {
  if (options.shard.empty()) return std::nullopt;
  QuestionStamp stamp("whatif");
  stamp.add(options.step, loaded);
  stamp.add("--set", options.sets);
  stamp.add("--flag", options.flags);
  stamp.add(options.sizes);
  stamp.add_file(options.run.profile);
  stamp.add("--measured-step", options.run.measured_step);
  return ShardLabel{shard, cases, stamp.text()};
}

int run_whatif(const WhatIfOptions& options, const Surroundings& surroundings) {
  const bool is_model = is_model_path(options.step.program);  // asks for its own policy
  if (!is_model && options.sets.empty() && options.flags.empty() && !options.sizes.any())
    return report(
        usage_error("nothing is asked",
                    "give --set NAME=CHOICE, --flag NAME=VALUE, --batch or --seq with --second, "
                    "or --accumulation"));
  const Result<Shard> shard = options.shard.empty() ? Shard() : parse_shard(options.shard);
  if (!shard.ok()) return report(shard.error());
  if (!options.shard.empty() && !options.json)
    return report(usage_error("parts of an answer are for merge, which reads JSON", "add --json"));
  const auto wishes = read_name_choices(options);
  if (!wishes.ok()) return report(wishes.error());
  if (!options.out.empty() && !groups_of(*wishes).empty())
    return report(
        usage_error("--out is for a policy that treats all layers alike", "leave the @ out"));
  if (!options.out.empty() && (options.sizes.any() || !options.shard.empty()))
    return report(usage_error("--out is for a policy of the program's own size, and not in parts",
                              "leave --second, --accumulation and --shard out"));
  if (is_model && options.sizes.any())
    return report(
        usage_error("--second, --batch, --seq and --accumulation are for compiled programs",
                    "change the configuration instead"));
  const Result<LoadedStep> loaded =
      load_step(options.step, surroundings, ModelForm::kEverythingSaved);
  if (!loaded.ok()) return report(loaded.error());
  std::vector<std::string> files = loaded->files;
  files.push_back(options.run.profile);
  if (const ExitCode code = check_output("--out", options.out, files); code != kDone) return code;
  const auto& [profile, topology] = loaded->machine;
  const Program& program = loaded->program;

  // What will run the step decides its streams, too.
  const std::optional<JaxlibVersion> runs_on = loaded->jaxlib_or_that_of_names();
  WhatIfReport result;
  result.program_name = program.name;
  result.path = program.path;
  result.modules_in_folder = program.modules_in_folder;
  result.hardware = profile.id;
  result.jaxlib = runs_on.value_or(newest_probed());
  result.jaxlib_is_assumed = !runs_on;
  result.budget = loaded->budget;
  auto anchor = read_anchor(options.run, *loaded);
  if (!anchor.ok()) return report(anchor.error());
  result.anchor = std::move(anchor).value();
  const FlagContext context{result.jaxlib, gpu_model(profile.device),
                            has_only_common_parts(program)};
  const auto cases = read_cases(options, context);
  if (!cases.ok()) return report(cases.error());
  if (!loaded->budget.pool_is_stated) result.assumptions.emplace_back(kAimsAheadOfTime);
  const Evaluator evaluator(program, loaded->schedule, profile, topology, loaded->names,
                            loaded->budget,
                            {.copy_streams = loaded->copy_streams_of(program),
                             .base = result.anchor ? &result.anchor->costs : nullptr,
                             .split = groups_of(*wishes)});
  result.handles = evaluator.handles();
  if (loaded->spec) add_assumptions(*loaded->spec, result);
  Result<PolicyCase> as_given = evaluator.evaluate(compiled_policy(evaluator.handles()));
  if (!as_given.ok()) return report(as_given.error());
  result.as_given = std::move(as_given).value();
  if (options.sizes.any()) {
    if (const auto wrong = run_sizes(options, *loaded, *wishes, *cases, context, *shard, result))
      return report(*wrong);
  } else {
    const auto policies = make_policies(*wishes, evaluator, loaded->names, loaded->spec);
    if (!policies.ok()) return report(policies.error());
    add_findings(policies->findings, result);
    if (const auto wrong =
            run_cases(evaluator, policies->policies, *cases, context, {}, nullptr, *shard, result))
      return report(*wrong);
    if (!options.sets.empty() && !loaded->spec) result.again = order_again(evaluator, context);
    if (!loaded->spec) {
      warn_of_guesses(evaluator.residuals(), result);
      warn_of_order(result);
    }
    if (const int code = write_plan(options, *loaded, evaluator, context, result); code != kDone)
      return code;
  }
  result.shard = label_part(options, *shard, *loaded, result.cases_dealt);
  return answer(options.json ? render_json(result) : render_text(result),
                is_ranked(result) ? kDone : kAnswerIsNo);
}

}  // namespace

Runner add_whatif(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<WhatIfOptions>();
  add_step_options(subcommand, options->step);
  add_budget_options(subcommand, options->step.budget);
  subcommand
      .add_option(
          "--set", options->sets,
          "what becomes of a name: NAME=keep, offload or recompute, or several with commas "
          "for a case each; of several names every combination; NAME@3 and NAME@0-15 are layers of "
          "an unrolled step")
      ->allow_extra_args(false);
  subcommand
      .add_option("--flag", options->flags,
                  "an XLA flag: NAME=VALUE, or NAME=VALUE,VALUE for a case each; of several flags "
                  "every combination")
      ->allow_extra_args(false);
  add_size_options(subcommand, options->sizes);
  add_jaxlib_option(subcommand, options->step.jaxlib, "the version that will run it");
  subcommand.add_option("--shard", options->shard,
                        "I/N: only part I of N of the cases, for `merge` to put together");
  add_plan_file_option(subcommand, options->out);
  add_run_profile_options(subcommand, options->run);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.whatif/1");
  return [options, &surroundings] { return run_whatif(*options, surroundings); };
}

}  // namespace spillway
