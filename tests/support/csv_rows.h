// Tables of reference data beside the repository, read for tests that need them.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::testing {

using CsvRow = std::map<std::string, std::string>;

/// Fields of one line; a quoted one may hold commas, and "" for a quote.
inline std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else if (line[i] != '\r')
      fields.back() += line[i];
  }
  return fields;
}

inline std::vector<CsvRow> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split_csv(line);
  std::vector<CsvRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = split_csv(line);
    CsvRow& row = rows.emplace_back();
    for (std::size_t k = 0; k < names.size() && k < fields.size(); ++k) row[names[k]] = fields[k];
  }
  return rows;
}

/// A folder of ../shared beside the repository; says so where it is not there.
inline std::optional<std::filesystem::path> shared_folder(const char* name) {
  const std::filesystem::path path =
      std::filesystem::path(SPILLWAY_SOURCE_DIR).parent_path() / "shared" / name;
  if (std::filesystem::exists(path)) return path;
  MESSAGE("skipped: " << path.string() << " is absent");
  return std::nullopt;
}

}  // namespace spillway::testing
