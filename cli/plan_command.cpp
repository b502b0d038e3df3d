// spillway plan PROGRAM --hw P [--names F] [--hbm-limit B] [--mem-fraction f] [--host-limit B]
//               [--explain NAME] [--pgle OUT.pbtxt] [--xla-flags TEXT | --xla-flags-env]
//               [--jaxlib V] [--json]
#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "cli/budget_options.h"
#include "cli/command.h"
#include "cli/flag_options.h"
#include "cli/jaxlib_option.h"
#include "cli/machine_options.h"
#include "cli/names_option.h"
#include "cli/output_file.h"
#include "cli/program_argument.h"
#include "model/hlo/read_program.h"
#include "model/run/write_pgle.h"
#include "sim/lowering/device_streams.h"
#include "sim/report/plan_report.h"

namespace spillway {
namespace {

struct PlanCommandOptions {
  std::string program;
  std::string names;
  MachineOptions machine;
  BudgetOptions budget;
  FlagOptions flags;
  std::string explain;
  std::string pgle;
  bool json = false;
};

/// XLA tells a text profile from a binary one by the file's name, and takes no notice of others.
std::string ends_in_pbtxt(const std::string& path) {
  return path.ends_with(".pbtxt") ? "" : "must end in .pbtxt: XLA ignores it otherwise";
}

int run_plan(const PlanCommandOptions& options, const Surroundings& surroundings) {
  const Result<BudgetWishes> wishes = read_wishes(options.budget);
  if (!wishes.ok()) return report(wishes.error());
  const auto jaxlib = read_jaxlib(options.flags.jaxlib, std::nullopt);
  if (!jaxlib.ok()) return report(jaxlib.error());
  const auto flags = read_user_flags(options.flags);
  if (!flags.ok()) return report(flags.error());
  const Result<Program> program = read_program(options.program);
  if (!program.ok()) return report(program.error());
  const Result<Schedule> schedule = text_schedule(*program);
  if (!schedule.ok()) return report(schedule.error());
  const Result<NameList> names = load_names(options.names);
  if (!names.ok()) return report(names.error());
  const Result<Machine> machine =
      find_machine(options.machine, surroundings, program->device_count());
  if (!machine.ok()) return report(machine.error());
  const Result<Budget> budget = make_budget(machine->profile, machine->topology, *wishes);
  if (!budget.ok()) return report(budget.error());
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  Result<PlanReport> made =
      make_plan_report(*program, *schedule, machine->profile, machine->topology, *names, *budget,
                       {.threads = threads}, {.jaxlib = *jaxlib, .flags = *flags},
                       find_copy_streams(*jaxlib ? *jaxlib : names->jaxlib, *program));
  if (!made.ok()) return report(made.error());
  PlanReport plan = std::move(made).value();
  if (!options.pgle.empty()) {
    const PgleProfile profile =
        make_pgle_profile(*program, costs(*program, machine->profile, machine->topology),
                          machine->profile, machine->topology);
    if (const ExitCode code = write_output(options.pgle, to_pbtxt(profile)); code != kDone)
      return code;
    plan.pgle = make_pgle_report(plan, profile, options.pgle);
  }
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
  add_program_argument(subcommand, options->program);
  add_machine_options(subcommand, options->machine);
  add_names_option(subcommand, options->names);
  add_budget_options(subcommand, options->budget);
  add_flag_options(subcommand, options->flags,
                   "the version that compiled it and will run it: streams and flags differ");
  subcommand.add_option("--explain", options->explain, "only why this name went where it did");
  subcommand
      .add_option("--pgle", options->pgle,
                  "also write what instructions and copies take, as a profile for XLA's scheduler")
      ->check(ends_in_pbtxt)
      ->excludes(subcommand.get_option("--explain"));
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.plan/1");
  return [options, &surroundings] { return run_plan(*options, surroundings); };
}

}  // namespace spillway
