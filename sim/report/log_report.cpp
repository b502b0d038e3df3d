#include "sim/report/log_report.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "sim/report/log_findings.h"
#include "sim/report/log_parts.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

/// So many parts of one kind are shown to a person; scripts get all.
constexpr std::size_t kShownParts = 4;

std::string lines_text(const std::vector<log::LineNumber>& lines) {
  std::string text;
  for (const log::LineNumber line : lines)
    text += (text.empty() ? "" : ", ") + std::to_string(line);
  return (lines.size() == 1 ? "line " : "lines ") + text;
}

std::string findings_text(const LogReport& report, bool decides) {
  std::string text;
  for (const LogFinding& finding : report.findings)
    if (finding.decides == decides)
      text +=
          fmt::format("  [{}] {}: {}\n", finding.code, lines_text(finding.lines), finding.message);
  return text;
}

/// "10.64 GiB", with "~" where the log rounded it.
std::string size_text(const log::LoggedBytes& bytes) {
  return (bytes.exact() ? "" : "~") + format_bytes(bytes.value);
}

std::string parts_text(const LogReport& report) {
  std::string text;
  std::map<std::string, std::size_t> shown;
  std::size_t hidden = 0;
  for (const LogPart& part : report.parts) {
    if (++shown[part.kind] > kShownParts) {
      ++hidden;
      continue;
    }
    text += fmt::format("line {}  {}{}{}\n", part.line, part.title,
                        part.times > 1 ? fmt::format(", {} times", part.times) : "",
                        part.cut ? ", cut" : "");
    TextTable rows({">", ">", ""});
    for (const LogRow& row : part.rows)
      rows.add({std::to_string(row.line),
                row.bytes ? size_text(*row.bytes) : format_count(*row.count), row.meaning});
    // The head has no words.
    if (!part.rows.empty()) {
      const std::string table = rows.text();
      text += table.substr(table.find('\n') + 1);
    }
  }
  if (hidden > 0) text += fmt::format("… {} more of the same kinds; --json has all\n", hidden);
  return text;
}

std::string comparisons_text(const LogReport& report) {
  TextTable table({"quantity", ">size", ">line", "from"});
  for (const LogComparison& comparison : report.comparisons) {
    for (std::size_t i = 0; i < comparison.values.size(); ++i) {
      const LogComparison::Value& value = comparison.values[i];
      table.add({i == 0 ? comparison.quantity : "", size_text(value.bytes),
                 std::to_string(value.line), value.source});
    }
    table.add({"", "", "", comparison.verdict});
  }
  return "Side by side\n" + table.text();
}

Json row_json(const LogRow& row) {
  Json json = {{"line", row.line}, {"key", row.key}};
  if (row.bytes) {
    json["bytes"] = row.bytes->value.value();
    json["off_by_bytes"] = row.bytes->off_by.value();
  } else {
    json["count"] = *row.count;
  }
  json["meaning"] = row.meaning;
  return json;
}

Json part_json(const LogPart& part) {
  Json json = {{"kind", part.kind},   {"title", part.title}, {"line", part.line},
               {"times", part.times}, {"cut", part.cut},     {"numbers", Json::array()}};
  for (const LogRow& row : part.rows) json["numbers"].push_back(row_json(row));
  return json;
}

Json comparison_json(const LogComparison& comparison) {
  Json json = {{"quantity", comparison.quantity},
               {"agree", comparison.agree},
               {"verdict", comparison.verdict},
               {"values", Json::array()}};
  for (const LogComparison::Value& value : comparison.values)
    json["values"].push_back({{"source", value.source},
                              {"line", value.line},
                              {"bytes", value.bytes.value.value()},
                              {"off_by_bytes", value.bytes.off_by.value()}});
  return json;
}

std::vector<std::string> make_notes(const log::Log& log, const std::vector<LogPart>& parts) {
  std::vector<std::string> notes;
  for (const LogPart& part : parts)
    if (part.cut)
      notes.push_back(
          fmt::format("{} at line {} is cut: what is complete was kept", part.title, part.line));
  if (log.half_number)
    notes.push_back("the text ends within a number, which was left out: it may be half of one");
  for (const log::UsageReport& report : log.usage_reports)
    if (report.unlisted > 0)
      notes.push_back(
          fmt::format("the report at line {} does not list {} small allocations: host "
                      "memory among them counts as HBM here",
                      report.line, report.unlisted));
  return notes;
}

}  // namespace

LogReport make_log_report(const log::Log& log, const LogWishes& wishes) {
  LogReport report;
  report.path = log.path;
  report.lines = log.lines;
  report.parts = make_log_parts(log);
  report.comparisons = compare_parts(log);
  report.notes = make_notes(log, report.parts);
  LogVerdict verdict = judge_log(log, wishes);
  report.findings = std::move(verdict.findings);
  report.fraction = std::move(verdict.fraction);
  return report;
}

std::string render_text(const LogReport& report) {
  std::string text = fmt::format("{}  {} lines\n", report.path, format_count(report.lines));
  const std::string decides = findings_text(report, true);
  text +=
      "\nWhat decides\n" +
      (decides.empty() ? std::string("  nothing here failed, or what failed is not in this text\n")
                       : decides);
  text += "\nWhat was found (~: rounded in the log)\n" + parts_text(report);
  if (!report.comparisons.empty()) text += "\n" + comparisons_text(report);
  const std::string to_know = findings_text(report, false);
  if (!to_know.empty()) text += "\nWhat to know\n" + to_know;
  for (const std::string& note : report.notes) text += "Note: " + note + "\n";
  return text;
}

std::string render_json(const LogReport& report) {
  Json json;
  json["schema"] = "spillway.log/1";
  json["path"] = report.path;
  json["lines"] = report.lines;
  json["findings"] = Json::array();
  for (const LogFinding& finding : report.findings)
    json["findings"].push_back({{"code", finding.code},
                                {"decides", finding.decides},
                                {"lines", finding.lines},
                                {"message", finding.message}});
  json["fraction"] = nullptr;
  if (report.fraction)
    json["fraction"] = {{"need_bytes", report.fraction->need.value()},
                        {"need_origin", report.fraction->need_origin},
                        {"card_bytes", report.fraction->card.value()},
                        {"card_origin", report.fraction->card_origin},
                        {"smallest", report.fraction->smallest},
                        {"smallest_as_it_lay", report.fraction->smallest_as_it_lay
                                                   ? Json(*report.fraction->smallest_as_it_lay)
                                                   : Json(nullptr)}};
  json["parts"] = Json::array();
  for (const LogPart& part : report.parts) json["parts"].push_back(part_json(part));
  json["comparisons"] = Json::array();
  for (const LogComparison& comparison : report.comparisons)
    json["comparisons"].push_back(comparison_json(comparison));
  json["notes"] = report.notes;
  // Names come from the log, and need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
