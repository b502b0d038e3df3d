#include "cli/capacity_outputs.h"

#include <CLI/CLI.hpp>

#include "cli/output_file.h"

namespace spillway {
namespace {

/// The forms a report can be written in.
struct Form {
  const char* option;
  std::string CapacityOutputs::*path;
  std::string (*render)(const CapacityReport&);
  const char* help;
};
const Form kForms[] = {
    {"--html", &CapacityOutputs::html, render_html, "writes one web page that needs no network"},
    {"--csv", &CapacityOutputs::csv, render_csv, "writes a line a cell"},
    {"--sqlite", &CapacityOutputs::sqlite, render_sqlite, "writes a database with all cells"},
    {"--markdown", &CapacityOutputs::markdown, render_markdown,
     "writes answers and tables for a document"},
};

}  // namespace

void add_capacity_outputs(CLI::App& subcommand, CapacityOutputs& outputs) {
  for (const Form& form : kForms) subcommand.add_option(form.option, outputs.*form.path, form.help);
}

ExitCode check_outputs(const CapacityOutputs& outputs, const std::vector<std::string>& inputs) {
  for (const Form& form : kForms)
    if (const ExitCode code = check_output(form.option, outputs.*form.path, inputs); code != kDone)
      return code;
  return kDone;
}

ExitCode write_capacity(const CapacityReport& report, const CapacityOutputs& outputs) {
  for (const Form& form : kForms) {
    const std::string& path = outputs.*form.path;
    if (path.empty()) continue;
    if (const ExitCode code = write_output(path, form.render(report)); code != kDone) return code;
  }
  return kDone;
}

}  // namespace spillway
