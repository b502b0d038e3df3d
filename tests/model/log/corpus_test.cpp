// Every memory usage report that XLA wrote for the corpus, where the corpus lies beside the
// repository: totals by colour, and nothing that looks cut.
#include <doctest/doctest.h>

#include <filesystem>

#include "model/log/read_log.h"
#include "tests/support/csv_rows.h"

namespace spillway::log {
namespace {

namespace fs = std::filesystem;

std::int64_t number(const testing::CsvRow& row, const char* column) {
  const std::string& text = row.at(column);
  return text.empty() ? 0 : std::stoll(text);
}

TEST_CASE("memory usage reports of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::size_t reports = 0, older = 0;
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    const std::string& id = row.at("id");
    if (row.at("status") != "ok" || !fs::exists(*corpus / id)) continue;
    CAPTURE(id);
    for (const auto& entry : fs::directory_iterator(*corpus / id)) {
      if (!entry.path().string().ends_with("-memory-usage-report.txt.gz")) continue;
      const Result<Log> log = read_log(entry.path().string());
      if (!log.ok()) FAIL(to_text(log.error()));
      REQUIRE(log->usage_reports.size() == 1);
      const UsageReport& report = log->usage_reports[0];
      CHECK_FALSE(report.cut);
      CHECK_FALSE(log->half_number);
      REQUIRE(report.device_total());
      CHECK(report.device_total()->value == Bytes(number(row, "ba_total_bytes")));
      const std::int64_t host = number(row, "host_temp_bytes") + number(row, "host_arg_bytes") +
                                number(row, "host_out_bytes") - number(row, "host_alias_bytes");
      CHECK(report.host_total().value_or(LoggedBytes{}).value == Bytes(host));
      ++reports;
      older += report.mixed_total ? 1 : 0;
    }
  }
  CHECK(reports == 104);
  CHECK(older == 4);
}

TEST_CASE("warnings of rematerialisation of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::size_t warnings = 0;
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    const std::string& text = row.at("remat_warning");
    if (text.empty()) continue;
    CAPTURE(text);
    const Result<Log> log = find_in_log(text, "warning");
    REQUIRE(log.ok());
    REQUIRE(log->remat_warnings.size() == 1);
    CHECK(log->remat_warnings[0].limit.exact());
    CHECK(log->remat_warnings[0].reached.value > log->remat_warnings[0].limit.value);
    ++warnings;
  }
  CHECK(warnings > 0);
}

}  // namespace
}  // namespace spillway::log
