#include "model/run/sqlite_file.h"

#include <sqlite3.h>

namespace spillway {
namespace {

/// A path as SQLite's URI: what would end it is written as %xx.
std::string uri_of(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  // Nobody writes while we read: without `immutable` SQLite would look for journals beside it.
  std::string uri = "file:";
  for (const char c : path) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '?' || c == '#' || c == '%' || code < 0x20) {
      uri += '%';
      uri += kHex[code >> 4];
      uri += kHex[code & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

std::optional<std::int64_t> SqliteRow::integer(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

std::string_view SqliteRow::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool SqliteFile::has_magic(std::string_view first_bytes) {
  return first_bytes.starts_with("SQLite format 3");
}

void SqliteFile::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Result<SqliteFile> SqliteFile::open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(uri_of(path).c_str(), &opened,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  SqliteFile file(path, std::unique_ptr<sqlite3, Close>(opened));
  if (status != SQLITE_OK) return error_in_file(path, "cannot be opened as a database");
  // Without this a database that is cut would not be read at all; nothing is ever written.
  (void)file.each("PRAGMA writable_schema=ON", [](const SqliteRow&) {});
  if (auto error = file.each("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')",
                             [&](const SqliteRow& row) { file.tables_.emplace_back(row.text(0)); }))
    return *error;
  return file;
}

std::vector<std::string> SqliteFile::columns(const std::string& table) const {
  std::vector<std::string> names;
  (void)each("PRAGMA table_info(" + sql_name(table) + ")",
             [&](const SqliteRow& row) { names.emplace_back(row.text(1)); });
  return names;
}

std::optional<Error> SqliteFile::each(const std::string& query,
                                      const std::function<void(const SqliteRow&)>& visit) const {
  sqlite3_stmt* prepared = nullptr;
  int status = sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
  if (status == SQLITE_OK)
    while ((status = sqlite3_step(prepared)) == SQLITE_ROW) visit(SqliteRow(prepared));
  if (status == SQLITE_DONE) return std::nullopt;
  return error_in_file(path_, std::string("SQLite says: ") + sqlite3_errmsg(database_.get()));
}

std::string sql_name(std::string_view name) {
  std::string quoted_name = "\"";
  for (const char c : name) {
    quoted_name += c;
    if (c == '"') quoted_name += c;
  }
  return quoted_name + '"';
}

}  // namespace spillway
