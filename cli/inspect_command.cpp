// spillway inspect PROGRAM [--names F] [--hw P [--mem-fraction f | --hbm-limit B]] [--jaxlib V]
//                  [--xla-flags TEXT | --xla-flags-env] [--json]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/budget_options.h"
#include "cli/command.h"
#include "cli/flag_options.h"
#include "cli/jaxlib_option.h"
#include "cli/load_step.h"
#include "cli/machine_options.h"
#include "cli/model_options.h"
#include "cli/names_option.h"
#include "cli/program_argument.h"
#include "model/flags/check_flags.h"
#include "model/flags/known_flags.h"
#include "model/hlo/read_program.h"
#include "model/spec/read_step.h"
#include "sim/report/inspect_report.h"

namespace spillway {
namespace {

struct InspectOptions {
  std::int64_t devices = 0;
  std::string settings;
  std::string program;
  std::string names;
  MachineOptions machine;
  BudgetOptions budget;
  FlagOptions flags;
  std::string jaxlib;
  bool json = false;
};

/// What is wrong with the user's flags joins the diagnostics.
std::optional<Error> add_flag_findings(const FlagOptions& options, const Program& program,
                                       const InspectContext& context, InspectReport& report) {
  const auto flags = read_user_flags(options);
  if (!flags.ok()) return flags.error();
  if (!*flags) return std::nullopt;
  FlagContext where{.jaxlib = context.jaxlib.value_or(newest_probed()),
                    .common_parts_only = has_only_common_parts(program)};
  if (context.hardware != nullptr) where.gpu = gpu_model(context.hardware->device);
  if (auto wrong = check_version(where.jaxlib)) return wrong;
  for (Diagnostic& finding : check_flags(**flags, where))
    report.diagnostics.push_back(std::move(finding));
  std::ranges::stable_sort(report.diagnostics, std::ranges::greater(), &Diagnostic::severity);
  return std::nullopt;
}

/// What a model's configuration would compile to.
int inspect_model(const InspectOptions& options, const Surroundings& surroundings) {
  if (options.machine.hardware.empty())
    return report(usage_error("what a configuration compiles to hangs on the machine",
                              "for example --hw gb200"));
  StepOptions step;
  step.program = options.program;
  step.names = options.names;
  step.machine = options.machine;
  step.budget = options.budget;
  step.jaxlib = options.jaxlib;
  step.devices = options.devices;
  step.settings = options.settings;
  const Result<LoadedStep> loaded = load_step(step, surroundings, ModelForm::kAsConfigured);
  if (!loaded.ok()) return report(loaded.error());
  const InspectContext context{
      .hardware = &loaded->machine.profile, .budget = &loaded->budget, .jaxlib = loaded->jaxlib};
  InspectReport result = make_inspect_report(loaded->program, loaded->names, context);
  if (const auto wrong = add_flag_findings(options.flags, loaded->program, context, result))
    return report(*wrong);
  return answer(options.json ? render_json(result) : render_text(result));
}

int run_inspect(const InspectOptions& options, const Surroundings& surroundings) {
  if (is_model_path(options.program)) return inspect_model(options, surroundings);
  const Result<BudgetWishes> wishes = read_wishes(options.budget);
  if (!wishes.ok()) return report(wishes.error());
  const Result<Program> program = read_program(options.program);
  if (!program.ok()) return report(program.error());
  const Result<NameList> names = load_names(options.names);
  if (!names.ok()) return report(names.error());
  const auto jaxlib = read_jaxlib(options.jaxlib);
  if (!jaxlib.ok()) return report(jaxlib.error());

  InspectContext context{.dump = read_dump_facts(program->path),
                         .jaxlib = *jaxlib ? *jaxlib : names->jaxlib};
  std::optional<Machine> machine;
  std::optional<Budget> budget;
  if (!options.machine.hardware.empty()) {
    Result<Machine> found = find_machine(options.machine, surroundings, program->device_count());
    if (!found.ok()) return report(found.error());
    machine = std::move(found).value();
    const Result<Budget> allowed = make_budget(machine->profile, machine->topology, *wishes);
    if (!allowed.ok()) return report(allowed.error());
    budget = *allowed;
    context.hardware = &machine->profile;
    context.budget = &*budget;
  }
  InspectReport result = make_inspect_report(*program, *names, context);
  if (const auto wrong = add_flag_findings(options.flags, *program, context, result))
    return report(*wrong);
  return answer(options.json ? render_json(result) : render_text(result));
}

}  // namespace

Runner add_inspect(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<InspectOptions>();
  add_program_argument(subcommand, options->program);
  add_names_option(subcommand, options->names);
  add_model_options(subcommand, options->devices, options->settings);
  add_machine_options(subcommand, options->machine, Need::kOptional);
  add_budget_options(subcommand, options->budget);
  for (const char* option : {"--topology", "--hbm-limit", "--mem-fraction", "--host-limit"})
    subcommand.get_option(option)->needs("--hw");
  add_flag_options(subcommand, options->flags);
  add_jaxlib_option(subcommand, options->jaxlib);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.inspect/1");
  return [options, &surroundings] { return run_inspect(*options, surroundings); };
}

}  // namespace spillway
