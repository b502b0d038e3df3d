// The tables of an Nsight Systems export as they are there: names and columns change with the
// version, and a table without rows is not written at all.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run/measured_run.h"
#include "model/run/sqlite_file.h"

namespace spillway {

class NsysTables {
 public:
  explicit NsysTables(const SqliteFile& file) : file_(file) {}

  /// The tables of that name and its later versions: NVTX_EVENTS, NVTX_EVENTS_V2, ….
  std::vector<std::string> versions_of(std::string_view name) const;

  /// "SELECT a, b FROM table": NULL for columns that the table lacks, whose names go to `lacks`.
  std::string select(const std::string& table, std::initializer_list<const char*> columns,
                     std::vector<std::string>* lacks = nullptr) const;

  /// What the file calls the kinds of memory and of copies, else as CUPTI numbers them in these
  /// exports.
  std::map<std::int64_t, MemoryPlace> memory_places() const;
  std::map<std::int64_t, CopyKind> copy_kinds() const;

 private:
  const SqliteFile& file_;
};

}  // namespace spillway
