#include "sim/report/capacity_figures.h"
#include "sim/report/capacity_report.h"
#include "sim/report/capacity_sentences.h"
#include "sim/report/sqlite_writer.h"

namespace spillway {
namespace {

using Row = std::vector<SqlValue>;

SqlValue sql(bool value) { return std::int64_t{value}; }
SqlValue sql(std::int64_t value) { return value; }
SqlValue sql(double value) { return value; }
SqlValue sql(const std::string& value) { return value; }

void add_cells(const CapacityReport& report, SqliteWriter& database) {
  std::vector<std::string> columns;
  std::vector<Row> rows;
  const CapacityCell none;
  const auto head = [&](const char* name, const auto&) { columns.emplace_back(name); };
  visit_key(none, head);
  visit_estimate(none, head);
  visit_derived(none, head);
  columns.emplace_back("impossible");
  for (const CapacityCell& cell : report.cells) {
    Row& row = rows.emplace_back();
    row.reserve(columns.size());
    const auto add = [&](const char*, const auto& value) { row.push_back(sql(plain(value))); };
    visit_key(cell, add);
    if (cell.is_possible()) {
      visit_estimate(cell, add);
      visit_derived(cell, add);
    }
    row.resize(columns.size());
    if (!cell.is_possible()) row.back() = cell.impossible;
  }
  database.add_table("cells", columns, rows);
}

void add_sentences(const char* table, const std::vector<std::string>& sentences,
                   SqliteWriter& database) {
  std::vector<Row> rows;
  for (const std::string& sentence : sentences) rows.push_back({sentence});
  database.add_table(table, {"sentence"}, rows);
}

}  // namespace

std::string render_sqlite(const CapacityReport& report) {
  SqliteWriter database;
  add_cells(report, database);
  std::vector<Row> machines;
  for (const CapacityMachine& m : report.machines)
    machines.push_back({m.id, m.name, m.hbm.value(), m.bf16_peak.value(), m.link,
                        m.link_rate.value(), m.domain_gpus});
  database.add_table("machines",
                     {"id", "name", "hbm_bytes", "bf16_flops_per_second", "link",
                      "link_to_device_bytes_per_second", "domain_gpus"},
                     machines);
  std::vector<Row> answers;
  for (const CapacityAnswer& answer : answer_questions(report))
    for (const std::string& sentence : answer.sentences)
      answers.push_back({answer.question, sentence});
  database.add_table("answers", {"question", "sentence"}, answers);
  add_sentences("assumptions", report.assumptions, database);
  return database.bytes();
}

}  // namespace spillway
