// spillway inspect PROGRAM [--names F] [--json]
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/names_option.h"
#include "model/hlo/read_program.h"
#include "sim/report/inspect_report.h"

namespace spillway {
namespace {

struct InspectOptions {
  std::string program;
  std::string names;
  bool json = false;
};

int run_inspect(const InspectOptions& options) {
  const Result<Program> program = read_program(options.program);
  if (!program.ok()) return report(program.error());
  const Result<NameList> names = load_names(options.names);
  if (!names.ok()) return report(names.error());
  const InspectReport result = make_inspect_report(*program, *names);
  return answer(options.json ? render_json(result) : render_text(result));
}

}  // namespace

Runner add_inspect(CLI::App& subcommand, const Surroundings&) {
  auto options = std::make_shared<InspectOptions>();
  subcommand
      .add_option("PROGRAM", options->program,
                  "XLA dump folder, or optimised HLO as text or proto (may be gzipped)")
      ->required();
  add_names_option(subcommand, options->names);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.inspect/1");
  return [options] { return run_inspect(*options); };
}

}  // namespace spillway
