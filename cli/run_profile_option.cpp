#include "cli/run_profile_option.h"

#include <CLI/CLI.hpp>

#include "model/hardware/units_text.h"
#include "model/run/pgle.h"
#include "model/run/read_run.h"

namespace spillway {

void add_run_profile_options(CLI::App& subcommand, RunProfileOptions& options) {
  CLI::Option* const profile = subcommand.add_option(
      "--profile", options.profile,
      "what a run of this very program took: its durations stand for whatever a policy leaves as "
      "it is (Nsight Systems as SQLite, a trace of jax.profiler, or costs for XLA's scheduler)");
  // Both replace the times of copies.
  profile->excludes(subcommand.get_option("--pageable-copies"));
  subcommand
      .add_option("--measured-step", options.measured_step,
                  "what the whole step of that run took, where the profile does not say: 5.32s")
      ->needs(profile);
}

namespace {

Result<std::optional<Seconds>> read_step(const std::string& text) {
  if (text.empty()) return std::optional<Seconds>();
  const Result<Seconds> time = parse_units<Seconds>(text);
  const char* const example = "for example --measured-step 5.32s";
  if (!time.ok())
    return usage_error("--measured-step " + spillway::quoted(text) + " " + time.error().text,
                       example);
  if (*time <= Seconds(0)) return usage_error("--measured-step must be more than nothing", example);
  return std::optional(*time);
}

}  // namespace

Result<MeasuredRun> read_measured_run(const std::string& path, const Program& program) {
  Result<MeasuredRun> run = read_run(path, fingerprint_before_lhs(program));
  if (!run.ok() || !run->is_modelled) return run;
  return error_in_file(path,
                       "holds what the cost model says, and in units of XLA's: nobody measured it",
                       "a profile of a run is what jax_enable_pgle or a profiler's trace gives");
}

Result<std::optional<Anchor>> read_anchor(const RunProfileOptions& options,
                                          const LoadedStep& loaded) {
  if (options.profile.empty()) return std::optional<Anchor>();
  const auto stated = read_step(options.measured_step);
  if (!stated.ok()) return stated.error();
  std::optional<Seconds> step = *stated;
  const Program& program = loaded.program;
  const Result<MeasuredRun> run = read_measured_run(options.profile, program);
  if (!run.ok()) return run.error();
  RunOfProgram found = match_run(program, *run);
  if (!step && found.step) step = found.step->time;
  std::vector<std::string> notes;
  const std::vector<RunNote>* const both[] = {&run->notes, &found.notes};
  for (const auto* list : both)
    for (const RunNote& note : *list) notes.push_back(note.missing + ": " + note.consequence);
  Result<Anchor> anchor =
      make_anchor(program, loaded.schedule, loaded.machine.profile, loaded.machine.topology,
                  loaded.copy_streams_of(program),
                  {options.profile, std::move(found.times), step, std::move(notes)});
  if (!anchor.ok()) return anchor.error();
  return std::optional(std::move(anchor).value());
}

}  // namespace spillway
