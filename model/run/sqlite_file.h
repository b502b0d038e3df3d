// A SQLite database opened for reading: which tables and columns it has, and rows of a query.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace spillway {

/// One row, valid while its visitor runs. Columns count from 0.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  std::optional<std::int64_t> integer(int column) const;  ///< empty for NULL and for text
  std::string_view text(int column) const;                ///< empty for NULL

 private:
  sqlite3_stmt* statement_;
};

class SqliteFile {
 public:
  /// Whether the first bytes of a file say that it is a database.
  static bool has_magic(std::string_view first_bytes);

  static Result<SqliteFile> open(const std::string& path);

  const std::vector<std::string>& tables() const { return tables_; }
  std::vector<std::string> columns(const std::string& table) const;

  /// Calls `visit` for every row. An error, of a damaged file or of a table it lacks, after the
  /// rows that could be read.
  std::optional<Error> each(const std::string& query,
                            const std::function<void(const SqliteRow&)>& visit) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  SqliteFile(std::string path, std::unique_ptr<sqlite3, Close> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::string> tables_;
};

/// A name in double quotes, as SQL has it.
std::string sql_name(std::string_view name);

}  // namespace spillway
