// spillway log, as a person and a script call it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::check_refused;
using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

TEST_CASE("the answer about a log stays as it is") {
  check_golden("log/oom.txt", run_spillway("log examples/logs/oom.txt").out);
  check_golden("log/oom.json", run_spillway("log examples/logs/oom.txt --json").out);
  check_golden("log/oom_h200.txt", run_spillway("log examples/logs/oom.txt --hw h200").out);
}

TEST_CASE("JSON of a log keeps its contract") {
  const auto log = nlohmann::json::parse(run_spillway("log examples/logs/oom.txt --json").out);
  CHECK(log["schema"] == "spillway.log/1");
  for (const char* key : {"path", "lines", "findings", "fraction", "parts", "comparisons", "notes"})
    CHECK(log.contains(key));
  for (const char* key : {"code", "decides", "lines", "message"})
    CHECK(log["findings"][0].contains(key));
  for (const char* key : {"need_bytes", "card_bytes", "card_origin", "smallest"})
    CHECK(log["fraction"].contains(key));
  for (const char* key : {"kind", "title", "line", "times", "cut", "numbers"})
    CHECK(log["parts"][0].contains(key));
  for (const char* key : {"line", "key", "bytes", "off_by_bytes", "meaning"})
    CHECK(log["parts"][0]["numbers"][0].contains(key));
}

TEST_CASE("a gzipped report is read like a plain one") {
  const TemporaryFolder folder;
  const std::string text = "Memory Space: default (color=0)\nTotal bytes: 4096 (4.0KiB)\n\n";
  const std::string plain = folder.write("r.txt", text);
  const Run run = run_spillway("log '" + plain + "'");
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("4.00 KiB  HBM: colours 0, 1 and 2") != std::string::npos);
  REQUIRE(std::system(("gzip -k '" + plain + "'").c_str()) == 0);
  const Run packed = run_spillway("log '" + plain + ".gz'");
  CHECK(packed.exit_code == 0);
  CHECK(packed.out.substr(packed.out.find('\n')) == run.out.substr(run.out.find('\n')));
}

TEST_CASE("what is no log is refused, with what would be one") {
  struct Row {
    const char* arguments;
    int exit_code;
    const char* message;
  };
  const Row rows[] = {
      {"log", 2, "FILE is required\nRun with --help for more information.\n"},
      {"log nowhere.txt", 3, "nowhere.txt: error: cannot be opened: No such file or directory\n"},
      {"log docs", 3, "docs: error: is a folder, not a file\n"},
      {"log LICENSE", 3,
       "LICENSE: error: holds nothing about memory that is known here\n  recognised are "
       "out-of-memory errors of XLA with their statistics, lines of the BFC allocator, warnings of "
       "rematerialisation and of the scheduler, -memory-usage-report.txt, and memory_analysis() "
       "printed\n"},
  };
  for (const Row& row : rows) check_refused(row.arguments, row.exit_code, row.message);
  CHECK(run_spillway("log examples/logs/oom.txt --hw gb2000").exit_code == 2);
}

}  // namespace
}  // namespace spillway
