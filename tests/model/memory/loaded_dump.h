// A dump folder, read and its memory assigned, for tests against what XLA wrote into that folder.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "model/hlo/read_program.h"
#include "model/memory/assignment.h"
#include "tests/support/csv_rows.h"

namespace spillway::testing {

/// The file of a dump folder whose name ends like this; empty when there is none.
inline std::filesystem::path find_file_in(const std::filesystem::path& folder,
                                          const std::string& ending) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().string().ends_with(ending)) return entry.path();
  return {};
}

/// As find_file_in; the running test fails when there is none.
inline std::filesystem::path file_in(const std::filesystem::path& folder,
                                     const std::string& ending) {
  const std::filesystem::path found = find_file_in(folder, ending);
  if (found.empty()) FAIL("no " << ending << " in " << folder.string());
  return found;
}

struct LoadedDump {
  Program program;
  MemoryAssignment memory;
};

/// Reads a folder and assigns its memory, once `change` has had the program where it is given.
inline LoadedDump load_dump(const std::filesystem::path& folder,
                            void (*change)(Program&) = nullptr) {
  Result<Program> read = read_program(folder.string());
  if (!read.ok()) FAIL(to_text(read.error()));
  Program program = std::move(read).value();
  if (change) change(program);
  const Result<Schedule> schedule = text_schedule(program);
  if (!schedule.ok()) FAIL(to_text(schedule.error()));
  MemoryAssignment memory = assign_memory(program, *schedule);
  return {std::move(program), std::move(memory)};
}

/// Rows of corpus.csv whose program compiled and lies in the corpus.
inline std::vector<CsvRow> corpus_rows(const std::filesystem::path& corpus) {
  std::vector<CsvRow> rows;
  for (CsvRow& row : read_csv(corpus / "corpus.csv"))
    if (row.at("status") == "ok" && std::filesystem::exists(corpus / row.at("id")))
      rows.push_back(std::move(row));
  return rows;
}

}  // namespace spillway::testing
