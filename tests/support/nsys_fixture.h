// Databases as `nsys export --type sqlite` writes them, of a few rows, made by the test that reads
// them.
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <string>

namespace spillway::testing {

/// Runs SQL on a new database.
inline std::string write_database(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  char* message = nullptr;
  const int status = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message);
  const std::string text = message == nullptr ? "" : message;
  sqlite3_free(message);
  sqlite3_close(database);
  REQUIRE_MESSAGE(status == SQLITE_OK, text);
  return path;
}

/// The tables of a current export, as far as a reader looks.
inline constexpr const char* kKernelTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, "
    "streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT, "
    "graphNodeId INT);";
inline constexpr const char* kCopyTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, "
    "correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);";
inline constexpr const char* kRuntimeTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId "
    "INT, nameId INT);";
inline constexpr const char* kNvtxTable =
    "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, "
    "globalTid INT, domainId INT);";
inline constexpr const char* kStringTable = "CREATE TABLE StringIds (id INT, value TEXT);";

/// Process 7, thread 9, as nsys packs them; a process has thread 0.
inline constexpr std::int64_t kThread = 7 * 0x1000000LL + 9;
inline constexpr std::int64_t kProcess = 7 * 0x1000000LL;

/// Two steps of a module, on a device: fusion.1 with two kernels, a copy to the host on a stream of
/// its own beside gemm.2, times in ns.
///
///   stream 13  [fusion.1  )[gemm.2             )
///              1000    1800 2000            4000     the second step 10000 later
///   stream 14                [copy-start.3   )
///                            2500         4500
inline std::string two_steps() {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  std::string sql = std::string(kKernelTable) + kCopyTable + kRuntimeTable + kNvtxTable +
                    kStringTable +
                    "INSERT INTO StringIds VALUES (1,'loop_fusion'),(2,'reduce_kernel'),"
                    "(3,'sm90_gemm'),(4,'TSL:Thunk:#name=jit(step)/dot,hlo_op=gemm.2#');";
  std::int64_t correlation = 0;
  for (std::int64_t step = 0; step < 2; ++step) {
    const std::int64_t at = step * 10000, host = at + 100;
    const auto kernel = [&](std::int64_t start, std::int64_t end, int name) {
      sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + number(at + start) + "," +
             number(at + end) + ",0,1,13," + number(++correlation) + "," + number(kProcess) + "," +
             number(name) + "," + number(name) + ",NULL);";
    };
    const auto launch = [&](std::int64_t start) {
      sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + number(host + start) + "," +
             number(host + start + 5) + "," + number(kThread) + "," + number(correlation) + ",0);";
    };
    const auto range = [&](std::int64_t start, std::int64_t end, const std::string& text,
                           const std::string& text_id = "NULL") {
      sql += "INSERT INTO NVTX_EVENTS VALUES (" + number(host + start) + "," + number(host + end) +
             ",59," + text + "," + text_id + "," + number(kThread) + ",1);";
    };
    range(0, 500, "'TSL:XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step,program_id=4#'");
    range(10, 90, "'TSL:Thunk:#name=jit(step)/mul,hlo_op=fusion.1#'");
    kernel(1000, 1300, 1);
    launch(20);
    kernel(1400, 1800, 2);
    launch(40);
    range(100, 190, "NULL", "4");
    kernel(2000, 4000, 3);
    launch(110);
    range(200, 290, "'TSL:Thunk:#name=jit(step)/copy,hlo_op=copy-start.3#'");
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (" + number(at + 2500) + "," +
           number(at + 4500) + ",0,14," + number(++correlation) + "," + number(kProcess) +
           ",100000,2,2,1);";
    launch(210);
  }
  return sql;
}

}  // namespace spillway::testing
