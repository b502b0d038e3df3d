#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "sim/report/capacity_report.h"
#include "sim/report/capacity_rows.h"
#include "sim/report/capacity_sentences.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

constexpr std::size_t kMostRows = 120;
constexpr std::size_t kMostSentences = 12;

/// Calls show(title, table) for each model on each machine.
template <typename Show>
void show_tables(const CapacityReport& report, const CapacityRows& rows, const Show& show) {
  for (auto at = rows.cells.begin(); at != rows.cells.end();) {
    const CapacityKey& key = report.cells[*at].key;
    const auto end = std::find_if(at, rows.cells.end(), [&](std::size_t c) {
      const CapacityKey& other = report.cells[c].key;
      return other.model != key.model || other.machine != key.machine;
    });
    TextTable table(capacity_heads());
    for (auto row = at; row != end; ++row) table.add(capacity_row(report.cells[*row]));
    show(fmt::format("{} on {}, {} of HBM a device", key.model, key.machine,
                     format_bytes(report.cells[*at].pool)),
         table);
    at = end;
  }
}

/// The first sentences, each behind `mark`, and how many more there are.
std::string list_text(const std::vector<std::string>& sentences, const char* mark) {
  std::string text;
  for (std::size_t s = 0; s < std::min(sentences.size(), kMostSentences); ++s)
    text += mark + sentences[s] + "\n";
  if (sentences.size() > kMostSentences)
    text += fmt::format("{}… {} more\n", mark, sentences.size() - kMostSentences);
  return text;
}

}  // namespace

bool fits_anywhere(const CapacityReport& report) {
  return std::ranges::any_of(report.cells, [](const CapacityCell& cell) { return cell.fits; });
}

std::string render_text(const CapacityReport& report) {
  const CapacityRows rows = choose_rows(report, kMostRows);
  std::string text;
  show_tables(report, rows, [&](const std::string& title, const TextTable& table) {
    text += title + "\n" + table.text() + "\n";
  });
  if (const std::string left_out = left_out_text(report, rows); !left_out.empty())
    text += left_out + "\n\n";
  for (const CapacityAnswer& answer : answer_questions(report))
    text += answer.question + "\n" + list_text(answer.sentences, "  ") + "\n";
  if (!fits_anywhere(report)) text += "Nothing fits.\n";
  for (const std::string& assumption : report.assumptions) text += "Assumed: " + assumption + "\n";
  return text;
}

std::string render_markdown(const CapacityReport& report) {
  const CapacityRows rows = choose_rows(report, kMostRows);
  std::string text = "# Capacity\n\n";
  for (const CapacityAnswer& answer : answer_questions(report))
    text += "## " + answer.question + "\n\n" + list_text(answer.sentences, "- ") + "\n";
  if (!fits_anywhere(report)) text += "Nothing fits.\n\n";
  show_tables(report, rows, [&](const std::string& title, const TextTable& table) {
    text += "## " + title + "\n\n" + table.markdown() + "\n";
  });
  if (const std::string left_out = left_out_text(report, rows); !left_out.empty())
    text += left_out + "\n\n";
  text += "## Assumed\n\n";
  for (const std::string& assumption : report.assumptions) text += "- " + assumption + "\n";
  return text;
}

}  // namespace spillway
