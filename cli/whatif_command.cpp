// spillway whatif PROGRAM --hw P --flag NAME=VALUE[,VALUE…] … [--names F] [--jaxlib V]
//                 [--hbm-limit B | --mem-fraction f] [--host-limit B] [--json]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "cli/budget_options.h"
#include "cli/command.h"
#include "cli/jaxlib_option.h"
#include "cli/machine_options.h"
#include "cli/names_option.h"
#include "cli/program_argument.h"
#include "model/flags/check_flags.h"
#include "model/flags/known_flags.h"
#include "model/hlo/read_program.h"
#include "sim/lowering/device_streams.h"
#include "sim/report/whatif_report.h"

namespace spillway {
namespace {

struct WhatIfOptions {
  std::string program;
  std::string names;
  MachineOptions machine;
  BudgetOptions budget;
  std::vector<std::string> flags;
  std::string jaxlib;
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

/// Every case, with the policy that the program was compiled with.
std::optional<Error> run_cases(const Evaluator& evaluator, const std::vector<FlagSettings>& cases,
                               const FlagContext& context, WhatIfReport& result) {
  const Policy policy = compiled_policy(evaluator.handles());
  Result<PolicyCase> as_given = evaluator.evaluate(policy);
  if (!as_given.ok()) return as_given.error();
  result.as_given = std::move(as_given).value();
  for (const FlagSettings& flags : cases) {
    for (Diagnostic& finding : check_flags(to_flag_text(flags), context))
      if (std::ranges::find(result.findings, finding.what, &Diagnostic::what) ==
          result.findings.end())
        result.findings.push_back(std::move(finding));
    const auto settings = schedule_settings(flags, context);
    if (!settings)
      return Error{ErrorKind::kUsage,
                   "whether XLA hides latencies on " + result.hardware + " is not known",
                   {},
                   "",
                   "say so: --flag xla_gpu_enable_latency_hiding_scheduler=true"};
    Result<PolicyCase> outcome = evaluator.evaluate(policy, *settings);
    if (!outcome.ok()) return outcome.error();
    result.cases.push_back({{policy, flags}, std::move(outcome).value()});
  }
  return std::nullopt;
}

int run_whatif(const WhatIfOptions& options, const Surroundings& surroundings) {
  const Result<BudgetWishes> wishes = read_wishes(options.budget);
  if (!wishes.ok()) return report(wishes.error());
  const Result<Program> program = read_program(options.program);
  if (!program.ok()) return report(program.error());
  const Result<Schedule> schedule = text_schedule(*program);
  if (!schedule.ok()) return report(schedule.error());
  const Result<NameList> names = load_names(options.names);
  if (!names.ok()) return report(names.error());
  const auto jaxlib = read_jaxlib(options.jaxlib, names->jaxlib);
  if (!jaxlib.ok()) return report(jaxlib.error());
  const Result<Machine> machine =
      find_machine(options.machine, surroundings, program->device_count());
  if (!machine.ok()) return report(machine.error());
  const Result<Budget> budget = make_budget(machine->profile, machine->topology, *wishes);
  if (!budget.ok()) return report(budget.error());

  WhatIfReport result;
  result.program_name = program->name;
  result.path = program->path;
  result.modules_in_folder = program->modules_in_folder;
  result.hardware = machine->profile.id;
  result.jaxlib = jaxlib->value_or(newest_probed());
  result.jaxlib_is_assumed = !*jaxlib;
  result.budget = *budget;
  const FlagContext context{result.jaxlib, machine->profile.device.compute_capability};
  const auto cases = read_cases(options, context);
  if (!cases.ok()) return report(cases.error());
  const Evaluator evaluator(*program, *schedule, machine->profile, machine->topology, *names,
                            *budget, find_copy_streams(names->jaxlib, *program));
  result.handles = evaluator.handles();
  if (const auto wrong = run_cases(evaluator, *cases, context, result)) return report(*wrong);
  return answer(options.json ? render_json(result) : render_text(result));
}

}  // namespace

Runner add_whatif(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<WhatIfOptions>();
  add_program_argument(subcommand, options->program);
  add_machine_options(subcommand, options->machine);
  add_names_option(subcommand, options->names);
  add_budget_options(subcommand, options->budget);
  subcommand
      .add_option("--flag", options->flags,
                  "an XLA flag: NAME=VALUE, or NAME=VALUE,VALUE for a case each; of several flags "
                  "every combination")
      ->required()
      ->allow_extra_args(false);
  add_jaxlib_option(subcommand, options->jaxlib, "the version that will run it");
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.whatif/1");
  return [options, &surroundings] { return run_whatif(*options, surroundings); };
}

}  // namespace spillway
