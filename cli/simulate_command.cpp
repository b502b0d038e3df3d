// spillway simulate PROGRAM --hw P [--topology hostsxgpus] [--jaxlib V] [--json]
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/jaxlib_option.h"
#include "cli/machine_options.h"
#include "model/hlo/read_program.h"
#include "sim/lowering/device_streams.h"
#include "sim/report/simulate_report.h"

namespace spillway {
namespace {

struct SimulateOptions {
  std::string program;
  MachineOptions machine;
  std::string jaxlib;
  bool json = false;
};

int run_simulate(const SimulateOptions& options, const Surroundings& surroundings) {
  const auto jaxlib = read_jaxlib(options.jaxlib);
  if (!jaxlib.ok()) return report(jaxlib.error());
  const Result<Program> program = read_program(options.program);
  if (!program.ok()) return report(program.error());
  const Result<Schedule> schedule = text_schedule(*program);
  if (!schedule.ok()) return report(schedule.error());
  const Result<Machine> machine =
      find_machine(options.machine, surroundings, program->device_count());
  if (!machine.ok()) return report(machine.error());
  const MemoryAssignment memory = assign_memory(*program, *schedule);
  const Result<SimResult> result =
      simulate(*program, *schedule, memory, machine->profile, machine->topology,
               {.copy_streams = find_copy_streams(*jaxlib, *program)});
  if (!result.ok()) return report(result.error());
  return answer(options.json ? render_json(*program, machine->profile, *result)
                             : render_text(*program, machine->profile, *result));
}

}  // namespace

Runner add_simulate(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<SimulateOptions>();
  subcommand
      .add_option("PROGRAM", options->program,
                  "XLA dump folder, or optimised HLO as text or proto (may be gzipped)")
      ->required();
  add_machine_options(subcommand, options->machine);
  add_jaxlib_option(subcommand, options->jaxlib);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.simulate/1");
  return [options, &surroundings] { return run_simulate(*options, surroundings); };
}

}  // namespace spillway
