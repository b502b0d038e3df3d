// spillway compare A B [--names F] [--names-of-b F] [--fail-if-peak-grows P%] [--json]
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/names_option.h"
#include "cli/percent_option.h"
#include "model/hlo/read_program.h"
#include "sim/report/compare_report.h"

namespace spillway {
namespace {

struct CompareOptions {
  std::string first, second;
  std::string names, second_names;
  std::string allowed_growth;
  bool json = false;
};

int run_compare(const CompareOptions& options) {
  std::optional<double> allowed;
  if (!options.allowed_growth.empty()) {
    const Result<double> percent = read_percent("--fail-if-peak-grows", options.allowed_growth);
    if (!percent.ok()) return report(percent.error());
    allowed = *percent;
  }
  const Result<Program> first = read_program(options.first);
  if (!first.ok()) return report(first.error());
  const Result<Program> second = read_program(options.second);
  if (!second.ok()) return report(second.error());
  const Result<NameList> names = load_names(options.names);
  if (!names.ok()) return report(names.error());
  const Result<NameList> second_names =
      load_names(options.second_names.empty() ? options.names : options.second_names);
  if (!second_names.ok()) return report(second_names.error());
  Result<CompareReport> compared = make_compare_report(*first, *names, *second, *second_names);
  if (!compared.ok()) return report(compared.error());
  CompareReport result = std::move(compared).value();
  result.allowed_growth = allowed;
  return answer(options.json ? render_json(result) : render_text(result),
                result.grows_too_much() ? kAnswerIsNo : kDone);
}

}  // namespace

Runner add_compare(CLI::App& subcommand, const Surroundings&) {
  auto options = std::make_shared<CompareOptions>();
  subcommand.add_option("A", options->first, "the program before: dump folder or file")->required();
  subcommand.add_option("B", options->second, "the program after")->required();
  subcommand.add_option("--names", options->names, "names sidecar of A, and of B unless B has one");
  subcommand.add_option("--names-of-b", options->second_names, "names sidecar of B");
  subcommand.add_option("--fail-if-peak-grows", options->allowed_growth,
                        "exit with 1 when B's HBM total exceeds A's by more: 1%");
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.compare/1");
  return [options] { return run_compare(*options); };
}

}  // namespace spillway
