#include "cli/load_step.h"

#include <CLI/CLI.hpp>

#include "cli/jaxlib_option.h"
#include "cli/model_options.h"
#include "cli/names_option.h"
#include "cli/program_argument.h"
#include "model/hardware/pageable.h"
#include "model/hlo/read_program.h"
#include "model/spec/read_step.h"
#include "sim/model_step.h"

namespace spillway {

void add_step_options(CLI::App& subcommand, StepOptions& options) {
  add_program_argument(subcommand, options.program);
  add_machine_options(subcommand, options.machine);
  add_names_option(subcommand, options.names);
  add_model_options(subcommand, options.devices, options.settings);
  subcommand.add_option("--pageable-copies", options.pageable_copies,
                        "as if memory of the host were not pinned: each copy takes so long as at "
                        "this rate, and the step waits for it: 1.4GB/s");
}

namespace {

Result<BytesPerSecond> read_pageable_rate(const std::string& text) {
  Result<BytesPerSecond> rate = parse_units<BytesPerSecond>(text);
  if (!rate.ok())
    return usage_error("--pageable-copies " + spillway::quoted(text) + " " + rate.error().text,
                       "for example --pageable-copies 1.4GB/s");
  if (!is_pageable_rate(*rate))
    return usage_error("--pageable-copies " + spillway::quoted(text) + " is no rate of copies",
                       std::string(kPageableRates));
  return rate;
}

Result<LoadedStep> load_model(const StepOptions& options, const Surroundings& surroundings,
                              const BudgetWishes& wishes,
                              const std::optional<JaxlibVersion>& jaxlib,
                              const std::optional<BytesPerSecond>& pageable, ModelForm form) {
  if (!options.names.empty())
    return usage_error("--names is for a compiled program",
                       "a model's configuration brings its own");
  const Result<StepSpec> spec = read_model_step(options.program, options.settings, options.devices);
  if (!spec.ok()) return spec.error();
  Result<Machine> found = find_machine(options.machine, surroundings, options.devices);
  if (!found.ok()) return found.error();
  Machine machine = std::move(found).value();
  if (pageable) machine.profile = with_pageable_copies(std::move(machine.profile), *pageable);
  const Result<Budget> budget = make_budget(machine.profile, machine.topology, wishes);
  if (!budget.ok()) return budget.error();
  const Result<ModelStep> step = build_step_program(*spec, step_text_options(machine.profile));
  if (!step.ok()) return step.error();
  Result<Program> program =
      form == ModelForm::kAsConfigured
          ? order_as_configured(*step, machine.profile, machine.topology, *budget)
          : order_everything_saved(*step, machine.profile, machine.topology, *budget);
  if (!program.ok()) return program.error();
  Schedule schedule = text_schedule(*program).value();
  return LoadedStep{std::move(program).value(),
                    std::move(schedule),
                    step->names,
                    std::move(machine),
                    *budget,
                    jaxlib,
                    {options.program, options.settings, options.machine.hardware},
                    pageable,
                    *spec};
}

}  // namespace

Result<LoadedStep> load_step(const StepOptions& options, const Surroundings& surroundings,
                             ModelForm form) {
  const Result<BudgetWishes> wishes = read_wishes(options.budget);
  if (!wishes.ok()) return wishes.error();
  const auto jaxlib = read_jaxlib(options.jaxlib);
  if (!jaxlib.ok()) return jaxlib.error();
  std::optional<BytesPerSecond> pageable;
  if (!options.pageable_copies.empty()) {
    const Result<BytesPerSecond> rate = read_pageable_rate(options.pageable_copies);
    if (!rate.ok()) return rate.error();
    pageable = *rate;
  }
  if (is_model_path(options.program))
    return load_model(options, surroundings, *wishes, *jaxlib, pageable, form);
  if (options.devices > 0 || !options.settings.empty())
    return usage_error("--devices and --settings are for a model's configuration",
                       "a compiled program says itself how many devices it is for");
  Result<Program> program = read_program(options.program);
  if (!program.ok()) return program.error();
  Result<Schedule> schedule = text_schedule(*program);
  if (!schedule.ok()) return schedule.error();
  Result<NameList> names = load_names(options.names);
  if (!names.ok()) return names.error();
  Result<Machine> found = find_machine(options.machine, surroundings, program->device_count());
  if (!found.ok()) return found.error();
  Machine machine = std::move(found).value();
  if (pageable) machine.profile = with_pageable_copies(std::move(machine.profile), *pageable);
  Result<Budget> budget = make_budget(machine.profile, machine.topology, *wishes);
  if (!budget.ok()) return budget.error();
  std::vector<std::string> files = {program->path, options.names, options.machine.hardware};
  return LoadedStep{std::move(program).value(),
                    std::move(schedule).value(),
                    std::move(names).value(),
                    std::move(machine),
                    std::move(budget).value(),
                    *jaxlib,
                    std::move(files),
                    pageable,
                    std::nullopt};
}

}  // namespace spillway
