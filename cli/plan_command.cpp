// spillway plan PROGRAM --hw P [--names F] [--hbm-limit B] [--mem-fraction f] [--host-limit B]
//               [--explain NAME] [--moves] [--sensitivity] [--pageable-copies RATE]
//               [--profile FILE [--measured-step TIME]]
//               [--need [--second DUMP --batch-of-dumps A,B --batch X[,X…]] [--accumulation N]]
//               [--out PLAN.yaml] [--pgle OUT.pbtxt] [--xla-flags TEXT | --xla-flags-env]
//               [--jaxlib V] [--json]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/flag_options.h"
#include "cli/jaxlib_option.h"
#include "cli/load_step.h"
#include "cli/output_file.h"
#include "cli/plan_file_option.h"
#include "cli/progress.h"
#include "cli/run_profile_option.h"
#include "cli/size_options.h"
#include "model/base/parallel.h"
#include "model/run/write_pgle.h"
#include "sim/lowering/device_streams.h"
#include "sim/report/plan_report.h"

namespace spillway {
namespace {

struct PlanCommandOptions {
  StepOptions step;
  FlagOptions flags;
  std::string explain;
  std::string pgle;
  std::string out;
  RunProfileOptions run;
  SizeOptions sizes;
  AnswerRequest asked;
  bool json = false;
};

/// XLA tells a text profile from a binary one by the file's name, and takes no notice of others.
std::string ends_in_pbtxt(const std::string& path) {
  return path.ends_with(".pbtxt")
             ? ""
             : "must end in .pbtxt: it is text, which XLA reads by that name only";
}

PlanFile to_plan_file(const StepOptions& options, const LoadedStep& loaded,
                      const PlanReport& report) {
  const PlanResult& plan = report.plan;
  return make_plan_file(plan_file_context(options, loaded, report.anchor), plan.handles,
                        plan.best.policy, report.user_settings, plan.fits,
                        {report.planned, text_schedule(report.planned).value(), report.best_run},
                        report.advice);
}

/// What the plan's policy needs at other sizes of the step.
std::optional<Error> add_needs_at_sizes(const PlanCommandOptions& options, const LoadedStep& loaded,
                                        PlanReport& plan) {
  if (!options.sizes.any()) return std::nullopt;
  const auto steps = read_sized_steps(options.sizes, loaded.program, loaded.names);
  if (!steps.ok()) return steps.error();
  const auto& [profile, topology] = loaded.machine;
  for (const SizedStep& step : *steps) {
    const Evaluator evaluator(step.program, step.schedule, profile, topology, step.names,
                              loaded.budget,
                              {.copy_streams = loaded.copy_streams_of(step.program),
                               .base = plan.anchor ? &plan.anchor->costs : nullptr});
    Result<SizedRequirements> need = find_requirements_at(evaluator, plan.plan, step);
    if (!need.ok()) return need.error();
    plan.answers.sized.push_back(std::move(need).value());
  }
  return std::nullopt;
}

int run_plan(const PlanCommandOptions& options, const Surroundings& surroundings) {
  if (options.sizes.any() && !options.asked.need)
    return report(usage_error("another size is there for --need",
                              "add --need; whatif answers for other policies at that size"));
  const auto flags = read_user_flags(options.flags);
  if (!flags.ok()) return report(flags.error());
  const Result<LoadedStep> loaded =
      load_step(options.step, surroundings, ModelForm::kEverythingSaved);
  if (!loaded.ok()) return report(loaded.error());
  std::vector<std::string> files = loaded->files;
  files.push_back(options.run.profile);
  if (const ExitCode code = check_output("--pgle", options.pgle, files); code != kDone) return code;
  if (const ExitCode code = check_output("--out", options.out, files); code != kDone) return code;
  const auto anchor = read_anchor(options.run, *loaded);
  if (!anchor.ok()) return report(anchor.error());
  const auto& [profile, topology] = loaded->machine;
  AnswerRequest asked = options.asked;
  asked.moves |= !options.explain.empty();
  Progress progress("policies simulated");
  Result<PlanReport> made = make_plan_report(
      loaded->program, loaded->schedule, profile, topology, loaded->names, loaded->budget,
      {.threads = useful_threads(), .simulated = [&progress] { progress.advance(); }},
      {.jaxlib = loaded->jaxlib, .flags = *flags}, loaded->copy_streams_of(loaded->program), asked,
      *anchor);
  if (!made.ok()) return report(made.error());
  PlanReport plan = std::move(made).value();
  if (plan.plan.ranked)
    if (const auto wrong = add_needs_at_sizes(options, *loaded, plan)) return report(*wrong);
  if (!plan.plan.ranked) {
    if (!options.out.empty() || !options.pgle.empty())
      std::fputs("nothing is written, since policies are not ranked\n", stderr);
    return answer(options.json ? render_json(plan) : render_text(plan), kAnswerIsNo);
  }
  if (!options.pgle.empty()) {
    const PgleProfile pgle = make_pgle_profile(
        loaded->program, costs(loaded->program, profile, topology), profile, topology);
    if (const ExitCode code = write_output(options.pgle, to_pbtxt(pgle)); code != kDone)
      return code;
    plan.pgle = make_pgle_report(plan, pgle, options.pgle);
  }
  if (!options.out.empty())
    if (const ExitCode code =
            write_plan_file(options.out, to_plan_file(options.step, *loaded, plan));
        code != kDone)
      return code;
  const ExitCode code = plan.plan.fits ? kDone : kAnswerIsNo;
  if (options.explain.empty())
    return answer(options.json ? render_json(plan) : render_text(plan), code);
  const Result<Explanation> explanation = explain(plan, options.explain);
  if (!explanation.ok()) return report(explanation.error());
  return answer(options.json ? render_json(plan, *explanation) : render_text(*explanation), code);
}

}  // namespace

Runner add_plan(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<PlanCommandOptions>();
  add_step_options(subcommand, options->step);
  add_budget_options(subcommand, options->step.budget);
  add_flag_options(subcommand, options->flags);
  add_jaxlib_option(subcommand, options->step.jaxlib,
                    "the version that compiled it and will run it: streams and flags differ");
  subcommand.add_option("--explain", options->explain, "only why this name went where it did");
  add_plan_file_option(subcommand, options->out);
  add_run_profile_options(subcommand, options->run);
  add_size_options(subcommand, options->sizes);
  subcommand
      .add_option("--pgle", options->pgle,
                  "also write what instructions and copies take, as a profile for XLA's scheduler")
      ->check(ends_in_pbtxt)
      ->excludes(subcommand.get_option("--explain"));
  subcommand.get_option("--out")->excludes(subcommand.get_option("--explain"));
  subcommand.add_flag("--moves", options->asked.moves,
                      "also what each offload moves, saves at the peak, and can hide behind");
  subcommand
      .add_flag("--sensitivity", options->asked.sensitivity,
                "also how the answer moves with link, compute and HBM, and how sure it is")
      ->excludes(subcommand.get_option("--explain"));
  subcommand
      .add_flag("--need", options->asked.need,
                "also what link, host memory and HBM the plan needs for nothing to be exposed")
      ->excludes(subcommand.get_option("--explain"));
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.plan/1");
  return [options, &surroundings] { return run_plan(*options, surroundings); };
}

}  // namespace spillway
