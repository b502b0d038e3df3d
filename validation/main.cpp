// spillway-validate: computes what others published, and grades it. docs/validation.md says how.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "validation/tables.h"
#include "validation/vtrain_rows.h"

namespace spillway {
namespace {

struct Options {
  std::string data = "validation/published.yaml";
  std::string profiles = "hw_profiles";
  std::string page;
  std::string vtrain;
  std::string only;
};

constexpr std::string_view kUsage =
    "spillway-validate [--data FILE] [--profiles FOLDER] [--write PAGE] [--vtrain CSV] [--only "
    "ID]\n"
    "  --data      published results (validation/published.yaml)\n"
    "  --profiles  machines (hw_profiles)\n"
    "  --write     put the tables between the markers of this page, instead of printing them\n"
    "  --vtrain    steps of vTrain's repository (data/ground_truth_multi.csv) in place of the "
    "data\n"
    "  --only      rows whose id begins so\n";

std::optional<Options> parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    std::string* value = name == "--data"       ? &options.data
                         : name == "--profiles" ? &options.profiles
                         : name == "--write"    ? &options.page
                         : name == "--vtrain"   ? &options.vtrain
                         : name == "--only"     ? &options.only
                                                : nullptr;
    if (value == nullptr || i + 1 == count) return std::nullopt;
    *value = arguments[++i];
  }
  return options;
}

int fail(const Error& error) {
  std::cerr << to_text(error) << "\n";
  return error.kind == ErrorKind::kUsage ? 2 : 3;
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int write_page(const std::string& path, const std::string& tables) {
  const auto page = read_text(path);
  if (!page) return fail(error_in_file(path, "cannot be opened"));
  const Result<std::string> changed = replace_between_markers(*page, tables, path);
  if (!changed.ok()) return fail(changed.error());
  std::ofstream file(path, std::ios::binary);
  file << *changed;
  return file.flush() ? 0 : fail(error_in_file(path, "cannot be written"));
}

int run(const Options& options) {
  Result<PublishedResults> read = read_published(options.data);
  if (!options.vtrain.empty()) {
    const auto csv = read_text(options.vtrain);
    if (!csv) return fail(error_in_file(options.vtrain, "cannot be opened"));
    read = parse_vtrain(*csv, options.vtrain);
  }
  if (!read.ok()) return fail(read.error());
  PublishedResults results = std::move(read).value();
  std::erase_if(results.rows,
                [&](const PublishedRow& row) { return !row.id.starts_with(options.only); });
  Measures measures({{options.profiles}});
  const std::vector<GradedRow> rows = grade_rows(results.rows, measures);
  const std::string tables = render_tables(results, rows);
  if (options.page.empty())
    std::cout << tables;
  else if (const int failed = write_page(options.page, tables))
    return failed;
  for (const GradedRow& row : rows)
    if (row.row->tier == Tier::kExact && row.verdict != Verdict::kHolds) return 1;
  return 0;
}

}  // namespace
}  // namespace spillway

int main(int count, char** arguments) {
  const auto options = spillway::parse(count, arguments);
  if (!options) {
    std::cerr << spillway::kUsage;
    return 2;
  }
  return spillway::run(*options);
}
