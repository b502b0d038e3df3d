#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "sim/report/capacity_heat_map.h"
#include "sim/report/capacity_report.h"
#include "sim/report/capacity_rows.h"
#include "sim/report/capacity_sentences.h"

namespace spillway {
namespace {

// A browser shows some thousand rows at once without complaint.
constexpr std::size_t kMostMapCells = 20'000;
constexpr std::size_t kMostTableRows = 2'000;
constexpr std::size_t kMostSentences = 100;

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto;
  max-width: 78rem; padding: 0 1rem; }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
h3 { margin: 1.4rem 0 .4rem; }
li { margin: .2rem 0; }
.wide { overflow-x: auto; }
.list { border-collapse: collapse; font-size: .8rem; white-space: nowrap; }
.list th, .list td { padding: .15rem .55rem; border-bottom: 1px solid #ddd; text-align: left; }
.list th { position: sticky; top: 0; background: #fff; }
.list .r { text-align: right; }
.list tr.no td { color: #666; font-style: italic; }
@media print { body { max-width: none; margin: 0; } .map, .list { break-inside: avoid; }
  .map td, .key i { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
)";

std::string answers_html(const CapacityReport& report) {
  std::string html;
  for (const CapacityAnswer& answer : answer_questions(report)) {
    html += "<h2>" + html_text(answer.question) + "</h2>\n<ul>\n";
    const std::size_t shown = std::min(answer.sentences.size(), kMostSentences);
    for (std::size_t s = 0; s < shown; ++s)
      html += "<li>" + html_text(answer.sentences[s]) + "</li>\n";
    if (shown < answer.sentences.size())
      html += fmt::format("<li>… {} more</li>\n", answer.sentences.size() - shown);
    html += "</ul>\n";
  }
  return html;
}

std::string machines_html(const CapacityReport& report) {
  std::string html =
      "<h2>The machines</h2>\n<div class=\"wide\"><table class=\"list\">\n<tr><th>id</th><th>name"
      "</th><th class=\"r\">HBM</th><th class=\"r\">bf16 peak</th><th>link to the host</th><th "
      "class=\"r\">to the device</th><th class=\"r\">GPUs without a network</th></tr>\n";
  for (const CapacityMachine& m : report.machines)
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{:.0f} TFLOP/s</td><td>{}"
        "</td><td class=\"r\">{:.0f} GB/s</td><td class=\"r\">{}</td></tr>\n",
        html_text(m.id), html_text(m.name), format_bytes(m.hbm), m.bf16_peak.value() / 1e12,
        html_text(m.link), m.link_rate.value() / 1e9, m.domain_gpus);
  return html + "</table></div>\n";
}

std::string table_html(const CapacityReport& report) {
  const CapacityRows rows = choose_rows(report, kMostTableRows);
  std::vector<std::string> heads = capacity_heads();
  std::vector<const char*> classes;
  std::string html = "<h2>All cells</h2>\n";
  if (const std::string left_out = left_out_text(report, rows); !left_out.empty())
    html += "<p>" + html_text(left_out) + "</p>\n";
  html += "<div class=\"wide\"><table class=\"list\">\n<tr><th>model</th><th>machine</th>";
  for (std::string& head : heads) {
    classes.push_back(head.starts_with('>') ? " class=\"r\"" : "");
    if (head.starts_with('>')) head.erase(0, 1);
    html += fmt::format("<th{}>{}</th>", classes.back(), html_text(head));
  }
  html += "</tr>\n";
  for (const std::size_t c : rows.cells) {
    const CapacityCell& cell = report.cells[c];
    html += fmt::format("<tr{}><td>{}</td><td>{}</td>", cell.fits ? "" : " class=\"no\"",
                        html_text(cell.key.model), html_text(cell.key.machine));
    const std::vector<std::string> row = capacity_row(cell);
    for (std::size_t k = 0; k < row.size(); ++k)
      html += fmt::format("<td{}>{}</td>", classes[k], html_text(row[k]));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string render_html(const CapacityReport& report) {
  const auto fit = std::ranges::count_if(report.cells, &CapacityCell::fits);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>Capacity</title>\n"
      "<style>";
  html += kStyle;
  html += heat_map_style();
  html += fmt::format(
      "</style>\n</head>\n<body>\n<h1>Capacity</h1>\n<p>{} of {} cells fit. In each cell the "
      "policy "
      "that trains fastest and fits; where none fits, the one that misses least.</p>\n",
      format_count(fit), format_count(static_cast<std::int64_t>(report.cells.size())));
  html += answers_html(report);
  html += heat_maps(report, kMostMapCells);
  html += machines_html(report);
  html += table_html(report);
  html += "<h2>Assumed</h2>\n<ul>\n";
  for (const std::string& assumption : report.assumptions)
    html += "<li>" + html_text(assumption) + "</li>\n";
  return html + "</ul>\n</body>\n</html>\n";
}

}  // namespace spillway
