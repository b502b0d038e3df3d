// A SQLite database made in memory, and its bytes: tables and rows, nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;

namespace spillway {

/// Empty is NULL.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

class SqliteWriter {
 public:
  SqliteWriter();
  ~SqliteWriter();
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  /// Every row has as many values as there are columns.
  void add_table(std::string_view name, const std::vector<std::string>& columns,
                 const std::vector<std::vector<SqlValue>>& rows);

  /// What the file would hold.
  std::string bytes() const;

 private:
  void run(const std::string& statement);

  sqlite3* database_ = nullptr;
};

}  // namespace spillway
