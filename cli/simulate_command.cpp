// spillway simulate PROGRAM --hw P [--topology hostsxgpus] [--names F] [--jaxlib V]
//                   [--trace F] [--explain COPY] [--profile RUN] [--json]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/jaxlib_option.h"
#include "cli/load_step.h"
#include "cli/output_file.h"
#include "cli/run_profile_option.h"
#include "model/base/format.h"
#include "model/base/gzip.h"
#include "model/base/utf8.h"
#include "sim/lowering/device_streams.h"
#include "sim/report/explain_report.h"
#include "sim/report/measured_report.h"
#include "sim/report/simulate_report.h"
#include "sim/trace/trace.h"

namespace spillway {
namespace {

struct SimulateOptions {
  StepOptions step;
  std::string trace;
  std::string explain;
  std::string profile;
  bool json = false;
};

/// Perfetto tells gzip by its first bytes, so the name decides for people: text where it says so.
std::string packed_for(const std::string& path, const std::string& json) {
  return path.ends_with(".json") ? json : gzip(json);
}

/// What it wrote goes to stderr: the answer on stdout is the same with and without a trace.
ExitCode write_trace(const std::string& path, const Trace& trace) {
  const std::string content = packed_for(path, trace.json);
  const ExitCode written = write_output(path, content);
  if (written != kDone) return written;
  const std::string left_out =
      trace.left_out == 0
          ? ""
          : fmt::format(", {} iterations of loops left out", format_count(trace.left_out));
  std::fprintf(stderr, "%s: a trace of %s slices and %s flows%s, %s; open it in ui.perfetto.dev\n",
               printable_line(path).c_str(), format_count(trace.slices).c_str(),
               format_count(trace.flows).c_str(), left_out.c_str(),
               format_bytes(Bytes(static_cast<std::int64_t>(content.size()))).c_str());
  return kDone;
}

/// Runs the step once more for what the engine says of each instruction.
Result<MeasuredReport> compare_with_run(const Program& program, const PreparedStep& prepared,
                                        const std::string& path) {
  const Result<MeasuredRun> measured = read_measured_run(path, program);
  if (!measured.ok()) return measured.error();
  const Result<engine::EngineResult> run = run_step(program, prepared);
  if (!run.ok()) return run.error();
  return make_measured_report(program, prepared, *run, *measured);
}

int run_simulate(const SimulateOptions& options, const Surroundings& surroundings) {
  const Result<LoadedStep> loaded = load_step(options.step, surroundings, ModelForm::kAsConfigured);
  if (!loaded.ok()) return report(loaded.error());
  std::vector<std::string> inputs = loaded->files;
  inputs.push_back(options.profile);
  if (const ExitCode code = check_output("--trace", options.trace, inputs); code != kDone)
    return code;
  const auto& [profile, topology] = loaded->machine;
  const Program& program = loaded->program;
  const MemoryAssignment memory = assign_memory(program, loaded->schedule);
  const Result<PreparedStep> prepared =
      prepare_step(program, loaded->schedule, memory, profile, topology,
                   {.copy_streams = loaded->copy_streams_of(program)});
  if (!prepared.ok()) return report(prepared.error());
  const Result<SimResult> result = simulate(program, memory, profile, topology, *prepared);
  if (!result.ok()) return report(result.error());
  const bool shows_copies = !options.explain.empty() || !options.trace.empty();
  const ResidualTable residuals =
      shows_copies ? find_residuals(program, memory, loaded->names) : ResidualTable();
  std::optional<Explained> explained;
  if (!options.explain.empty()) {
    auto copies = explain_copies(program, memory, *prepared, *result, residuals, options.explain);
    if (!copies.ok()) return report(copies.error());
    explained = Explained{options.explain, std::move(copies).value()};
  }
  if (!options.trace.empty()) {
    const Result<Trace> trace = make_trace(program, memory, profile, *prepared, *result, residuals);
    if (!trace.ok()) return report(trace.error());
    if (const ExitCode written = write_trace(options.trace, *trace); written != kDone)
      return written;
  }
  std::optional<MeasuredReport> measured;
  if (!options.profile.empty()) {
    Result<MeasuredReport> compared = compare_with_run(program, *prepared, options.profile);
    if (!compared.ok()) return report(compared.error());
    measured = std::move(compared).value();
  }
  if (options.json)
    return answer(render_json(program, profile, *result, explained ? &*explained : nullptr,
                              measured ? &*measured : nullptr));
  if (explained) return answer(explain_text(explained->copies));
  const std::string text = render_text(program, profile, *result);
  return answer(measured ? text + "\n" + measured_text(program, *measured) : text);
}

}  // namespace

Runner add_simulate(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<SimulateOptions>();
  add_step_options(subcommand, options->step);
  add_jaxlib_option(subcommand, options->step.jaxlib);
  subcommand.add_option(
      "--trace", options->trace,
      "writes the step for Perfetto: gzip, or JSON text where the name ends in .json");
  CLI::Option* explain = subcommand.add_option(
      "--explain", options->explain,
      "only why this copy, collective or residual is exposed, and what would hide it");
  subcommand
      .add_option("--profile", options->profile,
                  "a run of this program to compare with: Nsight Systems SQLite, .xplane.pb or "
                  ".trace.json.gz of jax.profiler, or a PGLE profile")
      ->excludes(explain);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.simulate/1");
  return [options, &surroundings] { return run_simulate(*options, surroundings); };
}

}  // namespace spillway
