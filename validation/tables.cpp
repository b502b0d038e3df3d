#include "validation/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spillway {
namespace {

constexpr std::string_view kHeadings[] = {"Arithmetic and bytes",
                                          "Which is faster",
                                          "Fits or not",
                                          "Memory of others",
                                          "Ratios of two of a source's runs",
                                          "Times and rates"};

std::string number(double value) {
  if (std::abs(value) >= 1000) return fmt::format("{:.0f}", value);
  return std::abs(value) >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.4g}", value);
}

std::string range(const Band& band) {
  const std::string low = number(band.low), high = number(band.high);
  return low == high ? low : low + " to " + high;
}

std::string computed(const GradedRow& row, const Band& band) {
  if (row.row->tier != Tier::kFit) return range(band);
  if (band.low != band.high) return "either";
  return band.low == 1 ? "fits" : "out of memory";
}

bool has_errors(Tier tier) { return tier == Tier::kAbsolute || tier == Tier::kMemory; }

std::string error_text(double error) {
  const std::string text = fmt::format("{:+.1f} %", 100 * error);
  return text == "-0.0 %" ? "+0.0 %" : text;
}

std::string row_text(const GradedRow& graded) {
  const PublishedRow& row = *graded.row;
  std::string text = fmt::format("| {} | {} | {}{}{} ", row.id, row.claim, row.published,
                                 row.unit.empty() ? "" : " ", row.unit);
  if (!graded.band) return text + "| " + graded.problem + " | | |\n";
  text += "| " + computed(graded, *graded.band) + " |";
  if (has_errors(row.tier)) {
    text += " " + error_text(error_of(row, *graded.band));
    if (graded.calibrated && !row.calibrates)
      text += ", " + error_text(error_of(row, *graded.calibrated));
  }
  return text + " | " + std::string(name_of(graded.verdict)) + " |\n";
}

std::string tier_text(Tier tier, const std::vector<GradedRow>& rows) {
  std::string text;
  std::size_t count[5] = {};
  for (const GradedRow& row : rows) {
    if (row.row->tier != tier) continue;
    text += row_text(row);
    ++count[static_cast<std::size_t>(row.verdict)];
  }
  if (text.empty()) return "";
  std::string summary;
  for (std::size_t v = 0; v < 5; ++v)
    if (count[v] > 0)
      summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count[v],
                             name_of(static_cast<Verdict>(v)));
  return fmt::format(
      "### {}\n\n{}.\n\n| row | what | published | computed | {} | verdict |\n"
      "|---|---|---|---|---|---|\n{}\n",
      kHeadings[static_cast<std::size_t>(tier)], summary, has_errors(tier) ? "off, calibrated" : "",
      text);
}

/// What was left open, once for each input, with the rows it belongs to.
std::string open_text(const std::vector<GradedRow>& rows) {
  std::vector<std::pair<std::string, std::string>> inputs;
  const auto add = [&](const std::string& what, const std::string& id) {
    const auto found = std::ranges::find(inputs, what, &std::pair<std::string, std::string>::first);
    if (found == inputs.end())
      inputs.emplace_back(what, id);
    else
      found->second += ", " + id;
  };
  for (const GradedRow& row : rows)
    for (const OpenInput& open : row.row->open) add(open.what, row.row->id);
  std::string text;
  for (const auto& [what, ids] : inputs) text += fmt::format("- {}: {}\n", ids, what);
  return text.empty() ? ""
                      : "### What the sources leave open, and what was tried\n\n" + text + "\n";
}

std::string notes_text(const std::vector<GradedRow>& rows) {
  std::string text;
  for (const GradedRow& row : rows)
    if (!row.row->note.empty()) text += fmt::format("- {}: {}\n", row.row->id, row.row->note);
  return text.empty() ? "" : "### Notes\n\n" + text + "\n";
}

std::string series_text(const std::vector<GradedRow>& rows) {
  std::string text;
  for (const SeriesErrors& errors : series_errors(rows)) {
    if (errors.predicted == 0) continue;
    text +=
        fmt::format("| {} | {} | {} | {:.1f} % | {:.1f} % | {} |\n", errors.series,
                    errors.calibrating, errors.predicted, 100 * errors.raw, 100 * errors.calibrated,
                    errors.naive ? fmt::format("{:.1f} %", 100 * *errors.naive) : "");
  }
  if (text.empty()) return "";
  return "### Series: some rows calibrate, the others are predicted\n\nMean size of the error "
         "over the predicted rows. Naive: FLOPs at one rate, from the same rows, with the "
         "pipeline's bubble.\n\n| series | calibrating | predicted | as the profile has it | "
         "calibrated | naive |\n|---|---|---|---|---|---|\n" +
         text + "\n";
}

}  // namespace

std::string render_tables(const PublishedResults& results, const std::vector<GradedRow>& rows) {
  std::string text;
  for (const Tier tier : kTiers) text += tier_text(tier, rows);
  text += series_text(rows) + open_text(rows) + notes_text(rows);
  if (!results.excluded.empty()) {
    text += "### Not graded\n\n| rows | why |\n|---|---|\n";
    for (const Excluded& excluded : results.excluded)
      text += fmt::format("| {} | {} |\n", excluded.rows, excluded.why);
  }
  return text;
}

Result<std::string> replace_between_markers(const std::string& page, const std::string& tables,
                                            const std::string& path) {
  const std::size_t begin = page.find(kBeginMarker), end = page.find(kEndMarker);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return error_in_file(
        path, "has no place for the tables",
        fmt::format("a line {} and behind it a line {}", kBeginMarker, kEndMarker));
  return page.substr(0, begin + kBeginMarker.size()) + "\n\n" + tables + page.substr(end);
}

}  // namespace spillway
