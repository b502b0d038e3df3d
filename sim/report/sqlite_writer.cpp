#include "sim/report/sqlite_writer.h"

#include <sqlite3.h>

#include "model/base/check.h"
#include "model/run/sqlite_file.h"

namespace spillway {
namespace {

/// The database is ours alone and in memory: only our own mistakes and a lack of memory fail.
void require(bool done) { check(done, "SQLite refuses what a report writes"); }

class Bind {
 public:
  Bind(sqlite3_stmt* statement, int at) : statement_(statement), at_(at) {}
  int operator()(std::monostate) const { return sqlite3_bind_null(statement_, at_); }
  int operator()(std::int64_t value) const { return sqlite3_bind_int64(statement_, at_, value); }
  int operator()(double value) const { return sqlite3_bind_double(statement_, at_, value); }
  int operator()(const std::string& value) const {
    return sqlite3_bind_text64(statement_, at_, value.data(), value.size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  }

 private:
  sqlite3_stmt* statement_;
  int at_;
};

}  // namespace

SqliteWriter::SqliteWriter() { require(sqlite3_open(":memory:", &database_) == SQLITE_OK); }

SqliteWriter::~SqliteWriter() { sqlite3_close(database_); }

void SqliteWriter::run(const std::string& statement) {
  require(sqlite3_exec(database_, statement.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
}

void SqliteWriter::add_table(std::string_view name, const std::vector<std::string>& columns,
                             const std::vector<std::vector<SqlValue>>& rows) {
  std::string names, places;
  for (const std::string& column : columns) {
    names += (names.empty() ? "" : ", ") + sql_name(column);
    places += places.empty() ? "?" : ", ?";
  }
  run("BEGIN");
  run("CREATE TABLE " + sql_name(name) + " (" + names + ")");
  const std::string insert = "INSERT INTO " + sql_name(name) + " VALUES (" + places + ")";
  sqlite3_stmt* prepared = nullptr;
  require(sqlite3_prepare_v2(database_, insert.c_str(), -1, &prepared, nullptr) == SQLITE_OK);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
  for (const std::vector<SqlValue>& row : rows) {
    require(row.size() == columns.size());
    for (std::size_t c = 0; c < row.size(); ++c)
      require(std::visit(Bind(prepared, static_cast<int>(c) + 1), row[c]) == SQLITE_OK);
    require(sqlite3_step(prepared) == SQLITE_DONE);
    require(sqlite3_reset(prepared) == SQLITE_OK);
  }
  run("COMMIT");
}

std::string SqliteWriter::bytes() const {
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> data(
      sqlite3_serialize(database_, "main", &size, 0), sqlite3_free);
  require(data != nullptr);
  return {reinterpret_cast<const char*>(data.get()), static_cast<std::size_t>(size)};
}

}  // namespace spillway
