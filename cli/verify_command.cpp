// spillway verify PLAN RECOMPILED [--names F] [--hw P] [--topology hostsxgpus] [--jaxlib V]
//                 [--allow-device P%] [--allow-host P%] [--allow-moved P%] [--allow-flops P%]
//                 [--allow-step P%] [--json]
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/jaxlib_option.h"
#include "cli/machine_options.h"
#include "cli/names_option.h"
#include "cli/percent_option.h"
#include "model/hardware/pageable.h"
#include "model/hlo/read_program.h"
#include "model/plan/read_plan_file.h"
#include "sim/lowering/device_streams.h"
#include "sim/report/verify_report.h"

namespace spillway {
namespace {

/// An option that says how far a figure may be off.
struct Allowance {
  const char* option;
  double VerifyTolerances::*tolerance;
  const char* help;
};
constexpr Allowance kAllowances[] = {
    {"--allow-device", &VerifyTolerances::device, "how far the HBM total may be off: 1%"},
    {"--allow-host", &VerifyTolerances::host, "the same for pinned host memory: 0%"},
    {"--allow-moved", &VerifyTolerances::moved, "for bytes over the link, each direction: 0%"},
    {"--allow-flops", &VerifyTolerances::flops, "for FLOPs of matrix products: 0.5%"},
    {"--allow-step", &VerifyTolerances::step, "for the simulated step: 5%"},
};

struct VerifyOptions {
  std::string plan, program, names, jaxlib;
  MachineOptions machine;
  std::string allowed[std::size(kAllowances)];
  bool json = false;
};

Result<VerifyTolerances> read_tolerances(const VerifyOptions& options) {
  VerifyTolerances tolerances;
  for (std::size_t k = 0; k < std::size(kAllowances); ++k) {
    if (options.allowed[k].empty()) continue;
    const Result<double> percent = read_percent(kAllowances[k].option, options.allowed[k]);
    if (!percent.ok()) return percent.error();
    tolerances.*kAllowances[k].tolerance = *percent / 100;
  }
  return tolerances;
}

/// The plan's machine, unless the user says another.
Result<Machine> machine_of(const VerifyOptions& options, const PlanFile& plan,
                           const Program& program, const Surroundings& surroundings) {
  MachineOptions machine = options.machine;
  if (machine.hardware.empty()) machine.hardware = plan.hardware;
  if (machine.topology.empty() && plan.topology) machine.topology = to_string(*plan.topology);
  return find_machine(machine, surroundings, program.device_count());
}

int run_verify(const VerifyOptions& options, const Surroundings& surroundings) {
  const Result<VerifyTolerances> tolerances = read_tolerances(options);
  if (!tolerances.ok()) return report(tolerances.error());
  const auto jaxlib = read_jaxlib(options.jaxlib);
  if (!jaxlib.ok()) return report(jaxlib.error());
  const Result<PlanFile> plan = read_plan_file(options.plan);
  if (!plan.ok()) return report(plan.error());
  const Result<Program> program = read_program(options.program);
  if (!program.ok()) return report(program.error());
  const Result<NameList> names = load_names(options.names);
  if (!names.ok()) return report(names.error());
  Result<Machine> found = machine_of(options, *plan, *program, surroundings);
  if (!found.ok()) return report(found.error());
  Machine machine = std::move(found).value();
  if (plan->pageable_copies)
    machine.profile = with_pageable_copies(std::move(machine.profile), *plan->pageable_copies);
  const auto compiled_by = *jaxlib ? *jaxlib : names->jaxlib;
  const Result<VerifyReport> result = make_verify_report(
      *plan, options.plan, *program,
      {.names = *names,
       .profile = machine.profile,
       .topology = machine.topology,
       .copy_streams = plan->pageable_copies
                           ? CopyStreams::kBlocking
                           : find_copy_streams(compiled_by ? compiled_by : plan->jaxlib, *program),
       .jaxlib = compiled_by,
       .tolerances = *tolerances});
  if (!result.ok()) return report(result.error());
  return answer(options.json ? render_json(*result) : render_text(*result),
                result->agrees() ? kDone : kAnswerIsNo);
}

}  // namespace

Runner add_verify(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<VerifyOptions>();
  subcommand.add_option("PLAN", options->plan, "a plan that plan or whatif wrote with --out")
      ->required();
  subcommand
      .add_option("RECOMPILED", options->program,
                  "the step compiled under the plan: dump folder or file")
      ->required();
  add_names_option(subcommand, options->names);
  add_machine_options(subcommand, options->machine, Need::kOptional);
  subcommand.get_option("--hw")->description(
      "another machine than the plan's: an id of 'spillway hw list', or a YAML file");
  add_jaxlib_option(subcommand, options->jaxlib);
  for (std::size_t k = 0; k < std::size(kAllowances); ++k)
    subcommand.add_option(kAllowances[k].option, options->allowed[k], kAllowances[k].help);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.verify/1");
  return [options, &surroundings] { return run_verify(*options, surroundings); };
}

}  // namespace spillway
