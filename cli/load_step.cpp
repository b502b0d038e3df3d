#include "cli/load_step.h"

#include "cli/jaxlib_option.h"
#include "cli/names_option.h"
#include "cli/program_argument.h"
#include "model/hlo/read_program.h"

namespace spillway {

void add_step_options(CLI::App& subcommand, StepOptions& options) {
  add_program_argument(subcommand, options.program);
  add_machine_options(subcommand, options.machine);
  add_names_option(subcommand, options.names);
}

Result<LoadedStep> load_step(const StepOptions& options, const Surroundings& surroundings) {
  const Result<BudgetWishes> wishes = read_wishes(options.budget);
  if (!wishes.ok()) return wishes.error();
  const auto jaxlib = read_jaxlib(options.jaxlib);
  if (!jaxlib.ok()) return jaxlib.error();
  Result<Program> program = read_program(options.program);
  if (!program.ok()) return program.error();
  Result<Schedule> schedule = text_schedule(*program);
  if (!schedule.ok()) return schedule.error();
  Result<NameList> names = load_names(options.names);
  if (!names.ok()) return names.error();
  Result<Machine> machine = find_machine(options.machine, surroundings, program->device_count());
  if (!machine.ok()) return machine.error();
  Result<Budget> budget = make_budget(machine->profile, machine->topology, *wishes);
  if (!budget.ok()) return budget.error();
  std::vector<std::string> files = {program->path, options.names, options.machine.hardware};
  return LoadedStep{std::move(program).value(),
                    std::move(schedule).value(),
                    std::move(names).value(),
                    std::move(machine).value(),
                    std::move(budget).value(),
                    *jaxlib,
                    std::move(files)};
}

}  // namespace spillway
